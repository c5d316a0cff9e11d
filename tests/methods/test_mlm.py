"""Masked language modelling: what is chosen, what is read, and the head that transformers itself would use."""

import json
import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.methods.mlm import Mlm, MlmOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import changed, states_of, texts_batch

MASKED_FAMILIES = ["bert", "roberta", "distilbert", "modernbert", "electra", "albert", "mpnet", "xlm-roberta"]


@pytest.fixture
def method(mlm_folder):
    return Mlm(Encoder.load(mlm_folder("bert")), MlmOptions()).eval()


def whole(method, batch):
    return method.summed_loss(batch) / method.weight(batch)


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_chosen_places_are_words_and_at_least_one_a_sentence(mlm_folder, family):
    method = Mlm(Encoder.load(mlm_folder(family)), MlmOptions())
    specials = set(method.encoder.tokens.tokenizer.all_special_ids)
    ids = method.encoder.tokenize(SENTENCES)
    for step in range(20):
        inputs, places = method.chosen(texts_batch(key=(1, step)), ids)
        for sentence, read, at in zip(ids, inputs, places, strict=True):
            words = [i for i, token in enumerate(sentence) if token not in specials]
            assert set(at) <= set(words)
            assert len(set(at)) == len(at) == max(1, round(0.15 * len(words)))
            assert sorted(at) == list(at)
            untouched = [i for i in range(len(sentence)) if i not in at]
            assert len(read) == len(sentence)
            assert [read[i] for i in untouched] == [sentence[i] for i in untouched]


@pytest.mark.parametrize(("mask", "replace"), [(0.8, 0.1), pytest.param(0.5, 0.4, marks=pytest.mark.long)])
def test_the_shares_in_the_long_run(mlm_folder, mask, replace):
    """Of many chosen tokens some are masked, some are others, drawn from all tokens, and the rest stay."""
    options = MlmOptions() if mask == 0.8 else MlmOptions(masked=mask, replaced=replace)  # 80/10/10 is the default
    method = Mlm(Encoder.load(mlm_folder("bert")), options)
    tokenizer = method.encoder.tokens.tokenizer
    ids = method.encoder.tokenize(SENTENCES)
    masked = stayed = total = 0
    where = np.zeros(len(ids[3]), int)
    others = set()
    steps = 1500
    for step in range(steps):
        inputs, places = method.chosen(texts_batch(key=(1, step)), ids)
        where[places[3]] += 1
        for sentence, read, at in zip(ids, inputs, places, strict=True):
            for place in at:
                total += 1
                masked += read[place] == tokenizer.mask_token_id
                stayed += read[place] == sentence[place]
                others.add(read[place])
    assert total > 15_000
    # a random token is by chance the mask, or the token itself, once in a vocabulary
    by_chance = replace / len(tokenizer)
    for count, share in ((masked, mask + by_chance), (stayed, 1 - mask - replace + by_chance)):
        assert abs(count / total - share) < 5 * (share * (1 - share) / total) ** 0.5
    assert others == set(range(len(tokenizer)))
    # and every word is as likely to be chosen
    words = where[1:-1]
    share = max(1, round(0.15 * len(words))) / len(words)
    assert where[0] == where[-1] == 0
    assert abs(words - steps * share).max() < 5 * (steps * share * (1 - share)) ** 0.5


def test_a_sentence_of_one_to_three_words_has_one_place(method):
    sentences = ["a", "a a", "a a a"]
    ids = method.encoder.tokenize(sentences)
    assert [len(row) for row in ids] == [3, 4, 5]  # with [CLS] and [SEP]
    _, places = method.chosen(texts_batch(sentences), ids)
    assert [len(at) for at in places] == [1, 1, 1]


def test_the_choice_does_not_depend_on_how_the_batch_is_cut(method):
    batch = texts_batch(key=(4, 2))
    ids = method.encoder.tokenize(batch.first)
    inputs, places = method.chosen(batch, ids)
    for start, stop in ((0, 3), (3, 8), (5, 6)):
        read, at = method.chosen(batch.part(start, stop), ids[start:stop])
        assert read == inputs[start:stop]
        assert [a.tolist() for a in at] == [a.tolist() for a in places[start:stop]]
    parts = [batch.part(start, start + 3) for start in (0, 3, 6)]
    assert sum(method.weight(part) for part in parts) == method.weight(batch) == sum(map(len, places))
    summed = sum(method.summed_loss(part) for part in parts)
    torch.testing.assert_close(summed, method.summed_loss(batch))


def test_other_steps_choose_others(method):
    ids = method.encoder.tokenize(SENTENCES)
    assert len({json.dumps(method.chosen(texts_batch(key=(0, step)), ids)[0]) for step in range(10)}) == 10


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_the_head_is_transformers_own(family, mlm_folder):
    folder = mlm_folder(family)
    method, batch = Mlm(Encoder.load(folder), MlmOptions(share=0.4)).eval(), texts_batch(key=(1, 5))
    assert not method.fresh_head
    reference = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = method.encoder.tokenize(SENTENCES)
    inputs, places = method.chosen(batch, ids)
    summed, n = 0.0, 0
    with torch.no_grad():
        ours = method.head(inputs_embeds=method.encoder.token_states(inputs, places)[None]).logits[0]
        for sentence, read, at in zip(ids, inputs, places, strict=True):
            logits = reference(input_ids=torch.tensor([read])).logits[0]
            torch.testing.assert_close(ours[n : n + len(at)], logits[at], atol=1e-5, rtol=1e-4)
            summed += F.cross_entropy(logits[at].double(), torch.tensor(sentence)[at], reduction="sum").item()
            n += len(at)
        assert method.summed_loss(batch).item() == pytest.approx(summed, rel=1e-5)
    assert n == len(ours) == method.weight(batch)


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_a_fresh_head_is_told(family, model_folder):
    method = Mlm(Encoder.load(model_folder(family)), MlmOptions()).train()
    assert method.fresh_head
    loss = whole(method, texts_batch())
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_the_head_shares_the_encoders_word_embeddings_and_has_no_body(family, mlm_folder):
    method = Mlm(Encoder.load(mlm_folder(family)), MlmOptions())
    words = method.encoder.backbone.model.get_input_embeddings().weight
    assert method.head.get_output_embeddings().weight is words
    own = {name for name, p in method.head.named_parameters() if p is not words}
    assert not any("layer." in name or "layers." in name or "embeddings." in name for name in own)
    method.train()
    whole(method, texts_batch()).backward()
    without = {name for name, p in method.head.named_parameters() if p.grad is None}
    assert not without  # every part of the head is trained


def test_a_model_in_memory_gets_a_fresh_head(mlm_folder, tmp_path):
    folder = shutil.copytree(mlm_folder("bert"), tmp_path / "moved")
    encoder = Encoder.load(folder)
    shutil.rmtree(folder)
    method = Mlm(encoder, MlmOptions())
    assert method.fresh_head
    assert torch.isfinite(whole(method, texts_batch()))


def test_a_folder_in_half_precision_trains_in_single(mlm_folder, tmp_path):
    folder = shutil.copytree(mlm_folder("bert"), tmp_path / "half")
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    encoder = Encoder.load(folder)
    for fresh in (False, True):
        method = Mlm(encoder, MlmOptions())
        assert method.fresh_head == fresh
        assert {p.dtype for p in method.parameters()} == {torch.float32}
        assert torch.isfinite(whole(method, texts_batch()))
        shutil.rmtree(folder, ignore_errors=True)


def test_the_loss_is_at_chosen_places_only(method, monkeypatch):
    batch = texts_batch(key=(1, 1))
    ids = method.encoder.tokenize(batch.first)
    inputs, places = method.chosen(batch, ids)
    seen = []
    head = method.head.forward
    monkeypatch.setattr(
        method.head,
        "forward",
        lambda inputs_embeds: seen.append(inputs_embeds.shape) or head(inputs_embeds=inputs_embeds),
    )
    loss = method.summed_loss(batch).item()
    assert seen == [(1, sum(map(len, places)), 32)]

    # with other labels at places that were not chosen, nothing changes; at a chosen one, it does
    def loss_with(sentence, place):
        other = [list(row) for row in ids]
        other[sentence][place] = (other[sentence][place] + 1) % 100
        monkeypatch.setattr(method.encoder, "tokenize", lambda texts: other)
        monkeypatch.setattr(method, "chosen", lambda batch, given: (inputs, places))
        return method.summed_loss(batch).item()

    free = next(i for i in range(len(ids[0])) if i not in places[0])
    assert loss_with(0, free) == loss
    assert loss_with(0, places[0][0]) != loss


def test_texts_without_words_have_nothing_to_predict(method):
    batch = texts_batch(["", "  "])
    assert method.weight(batch) == 1  # nothing is divided by nothing
    assert method.summed_loss(batch).item() == 0
    mixed = texts_batch(["", "Yes", ""])
    assert method.weight(mixed) >= 1
    assert torch.isfinite(method.summed_loss(mixed))


def test_training_lowers_the_loss_and_moves_encoder_and_head(mlm_folder):
    method = Mlm(Encoder.load(mlm_folder("bert")), MlmOptions()).train()
    method.encoder.backbone.dropout = 0.0
    before = states_of(method)
    optimizer = torch.optim.AdamW(method.parameters(), lr=3e-3)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = whole(method, texts_batch())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    moved = changed(method, before)
    assert any("head" in name for name in moved)
    assert any("encoder.layer.0" in name for name in moved)
    assert len(method.finished().heads) == 0


def test_models_without_a_mask_are_refused(model_folder):
    with pytest.raises(InputError, match="a t5 model without a mask token"):
        Mlm(Encoder.load(model_folder("t5")), MlmOptions())
