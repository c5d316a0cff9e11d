"""Contrastive learning from pairs and triplets."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import AutoModelForMaskedLM

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.methods.contrastive import Contrastive, ContrastiveOptions
from sentloom.methods.mlm import MlmOptions, corrupted
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, pairs_batch
from tests.small_data import build_dataset
from tests.test_losses import oracle_contrastive

NEGATIVES = [["No.", "It is dark."], ["A cat."], [], ["Nothing", "left", "here"], ["x"], ["y"], ["No.", "z"], ["w"]]


def triplets_batch(negatives=NEGATIVES, key=(0, 0)):
    n = len(negatives)
    texts = {"anchor": SENTENCES[:n], "positive": OTHERS[:n], "negatives": negatives}
    return Batch(texts, np.arange(n), np.arange(n), key)


def build(encoder, **options):
    torch.manual_seed(0)
    return Contrastive(encoder, ContrastiveOptions(**options)).double().eval()


def plain(vectors):
    return vectors.detach().tolist()


def test_pairs_equal_the_formula(encoder):
    method, batch = build(encoder, temperature=0.07, directions="both", margin=0.2), pairs_batch()
    embeddings = method.embed(batch)
    expected = oracle_contrastive(*map(plain, embeddings), [], 0.07, margin=0.2, both=True)
    assert method.loss(embeddings, batch).item() == pytest.approx(expected, rel=1e-9)
    alone = encoder(encoder.tokenize([SENTENCES[3]]), raw=True)
    torch.testing.assert_close(embeddings[0][3:4], alone)


@pytest.mark.parametrize("used", [1, 2, 4])
def test_triplets_equal_the_formula_whatever_number_of_negatives_a_row_has(encoder, used):
    method, batch = build(encoder, negatives=used, hard_negative_weight=0.5, mask_duplicates=False), triplets_batch()
    embeddings = method.embed(batch)
    assert embeddings[2].shape == (8, used, encoder.dimension)
    absent = {(i, j, k) for i in range(8) for j in range(8) for k in range(len(NEGATIVES[j]), used)}
    vectors = [plain(part) for part in embeddings]
    expected = oracle_contrastive(*vectors, 0.05, own_weight=0.5, barred=absent)
    assert method.loss(embeddings, batch).item() == pytest.approx(expected, rel=1e-9)


def test_of_many_negatives_some_are_sampled_at_each_step_whatever_the_chunks(encoder):
    method = build(encoder, negatives=2)
    many = [[f"negative {number}" for number in range(9)]] * 8
    whole = triplets_batch(many, key=(1, 5))
    drawn = method.sampled(whole)
    assert all(len(set(row)) == 2 and set(row) <= set(many[0]) for row in drawn)
    assert len({tuple(row) for row in drawn}) > 3  # rows draw by themselves
    assert method.sampled(whole.part(3, 6)) == drawn[3:6]
    assert method.sampled(triplets_batch(many, key=(1, 6))) != drawn


def test_a_hard_negative_that_says_what_another_rows_pair_says_is_none_there(encoder):
    method, plain_method = build(encoder), build(encoder, mask_duplicates=False)
    negatives = [[OTHERS[1].upper()], ["b"], [f" {SENTENCES[0]}"], ["d"]]
    batch = triplets_batch(negatives)
    barred = method.no_negatives(batch).barred.numpy()
    expected = np.zeros((4, 4), bool)
    expected[1, 0] = True  # the positive of row 1 is the negative of row 0
    expected[0, 2] = True  # the anchor of row 0 is the negative of row 2
    assert (barred == expected).all()
    assert not plain_method.no_negatives(batch).barred.any()
    embeddings = method.embed(batch)
    out = {(1, 0, 0), (0, 2, 0)}
    vectors = [plain(part) for part in embeddings]
    assert method.loss(embeddings, batch).item() == pytest.approx(
        oracle_contrastive(*vectors, 0.05, barred=out), rel=1e-9
    )


def test_the_projection_has_no_bias_gives_unit_vectors_and_is_kept(encoder, tmp_path):
    encoder.unit_length = False
    method = build(encoder, projection=12)
    method.float()
    assert encoder.dimension == 12
    assert encoder.heads[0].linear.bias is None
    method.finished().save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    vectors = again.encode(SENTENCES)
    np.testing.assert_allclose(vectors, encoder.encode(SENTENCES), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_pairs_alone_need_no_negatives_and_none_may_be_asked_for(encoder):
    assert len(build(encoder).embed(pairs_batch())) == 2
    assert len(build(encoder, negatives=0).embed(triplets_batch())) == 2


def test_a_second_stage_goes_on_with_the_first_ones_head(encoder):
    build(encoder, projection=12)
    first = encoder.heads[0]
    build(encoder, projection=12)
    assert list(encoder.heads) == [first]
    build(encoder, projection=7)
    assert encoder.dimension == 7


def pairs(*rows):
    return Batch(
        {"anchor": [a for a, _ in rows], "positive": [p for _, p in rows]},
        np.arange(len(rows)),
        np.arange(len(rows)),
        (0, 0),
    )


def masked_by_text(method, batch):
    return {(i, j) for i, j in np.argwhere(method.same(batch).numpy()).tolist()}


def test_several_positives_of_an_anchor_and_anchors_of_a_positive_are_no_negatives(encoder, tmp_path):
    rows = [("q1", "a1"), ("q1", "a2"), ("q2", "a2"), ("q3", "a3")]
    batch = pairs(*rows)
    direct = {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert masked_by_text(build(encoder), batch) == direct | {(0, 2)}  # row 1 says that a2 answers q1
    # the same, if the row that says so is not in the batch
    method = build(encoder)
    method.prepare(build_dataset(Shape.PAIRS, rows), tmp_path)
    few = pairs(rows[0], rows[2], rows[3])
    assert masked_by_text(build(encoder), few) == set()
    assert masked_by_text(method, few) == {(0, 1)}
    assert method.masked(few) == 1
    embeddings = method.embed(few)
    expected = oracle_contrastive(*map(plain, embeddings), [], 0.05, skip={(0, 1)})
    assert method.loss(embeddings, few).item() == pytest.approx(expected, rel=1e-9)
    assert build(encoder, mask_duplicates=False).same(few) is None


def test_a_hard_negative_that_answers_the_anchor_in_another_row_is_none(encoder, tmp_path):
    rows = [("q1", "a1", ["a2"]), ("q1", "a2", ["x"]), ("q2", "a3", ["a1"])]
    method = build(encoder)
    method.prepare(build_dataset(Shape.TRIPLETS, rows), tmp_path)
    texts = {"anchor": ["q1", "q2"], "positive": ["a1", "a3"], "negatives": [["a2"], ["a1"]]}
    batch = Batch(texts, np.array([0, 2]), np.arange(2), (0, 0))
    assert method.no_negatives(batch).barred.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_a_guide_leaves_out_what_it_finds_closer_than_the_positive(model_folder, encoder, margin):
    guide = Encoder.load(model_folder("distilbert"), pooling="mean")
    method = build(
        encoder, guided=True, guide=str(model_folder("distilbert")), guide_margin=margin, directions="both",
        mask_duplicates=False,
    )  # fmt: skip
    method.guide.encoder.pooling = guide.pooling
    negatives = [["No."], ["It is dark."], ["A cat."], ["x"], ["y"], ["z"], ["w"], []]
    batch = triplets_batch(negatives)
    g, p = (guide.encode(texts).astype(float) for texts in (SENTENCES, OTHERS))
    n = guide.encode([part[0] if part else "" for part in negatives]).astype(float)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (g, p, n)]
    scores, hard = unit[0] @ unit[1].T, unit[0] @ unit[2].T
    limit = scores.diagonal() - margin
    skip = {(i, j) for i in range(8) for j in range(8) if scores[i, j] > limit[i]}
    back = {(i, j) for i in range(8) for j in range(8) if scores[j, i] > limit[i]}
    barred = {(i, j, 0) for i in range(8) for j in range(8) if hard[i, j] > limit[i] or not negatives[j]}
    assert skip - {(i, i) for i in range(8)}
    assert len(skip) < 50
    excluded = method.no_negatives(batch)
    same, same_back, out = excluded.same, excluded.same_back, excluded.barred
    away = {(i, i) for i in range(8)}
    assert {(i, j) for i, j in np.argwhere(same.numpy()).tolist()} - away == skip - away
    assert {(i, j) for i, j in np.argwhere(same_back.numpy()).tolist()} - away == back - away
    assert {(i, j, 0) for i, j in np.argwhere(out.numpy()).tolist()} == barred
    embeddings = method.embed(batch)
    forth = oracle_contrastive(*map(plain, embeddings), 0.05, skip=skip - away, barred=barred)
    v, v_plus, _ = map(plain, embeddings)
    assert method.loss(embeddings, batch).item() == pytest.approx(
        forth + oracle_contrastive(v_plus, v, [], 0.05, skip=back - away), rel=1e-9
    )


def test_the_guide_is_the_base_itself_unless_another_is_named(encoder):
    start = encoder.encode(SENTENCES)
    method = build(encoder, guided=True, head=True)
    with torch.no_grad():
        next(encoder.parameters()).add_(1.0)
    np.testing.assert_allclose(method.guide.encoder.float().encode(SENTENCES), start, atol=1e-6)  # without the new head
    assert method.frozen == ("guide",)
    with pytest.raises(ValidationError, match="not guided"):
        ContrastiveOptions(guide="embedded")


def test_masked_tokens_of_all_sentences_are_learned_beside_the_pairs(mlm_folder):
    """The loss is that of the pairs plus the weight times transformers' own mean over the chosen tokens."""
    encoder = Encoder.load(mlm_folder("bert"), pooling="first")
    method, batch = build(encoder, mlm_weight=0.1, negatives=1), triplets_batch()
    *vectors, masked = method.embed(batch)
    plain_method = build(encoder.copy(), negatives=1)
    pairs = plain_method.loss(plain_method.embed(batch), batch).item()
    negatives = [row[0] for row in method.sampled(batch)]
    texts = [text for row in zip(batch.first, batch.second, negatives, strict=True) for text in row]
    ids = encoder.tokenize(texts)
    draws = [batch.random(place) for place in range(8) for _ in range(3)]
    shared = [draws[number - number % 3] for number in range(24)]  # the sentences of a row share its generator
    inputs, places = corrupted(ids, shared, encoder.tokens.tokenizer, MlmOptions())
    model = AutoModelForMaskedLM.from_pretrained(mlm_folder("bert")).double().eval()
    losses = []
    for read, sentence, at in zip(inputs, ids, places, strict=True):
        logits = model(torch.tensor([read])).logits[0]
        losses += [-logits[place].log_softmax(dim=0)[sentence[place]].item() for place in at]
    assert masked[:, 1].sum().item() == len(losses) >= 16
    expected = pairs + 0.1 * sum(losses) / len(losses)
    assert method.loss((*vectors, masked), batch).item() == pytest.approx(expected, rel=1e-6)


def test_masked_tokens_have_no_dimensions():
    with pytest.raises(ValidationError, match="mlm_weight with dimensions"):
        ContrastiveOptions(mlm_weight=0.1, dimensions=[8])
