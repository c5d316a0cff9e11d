"""A frozen guide and what it takes for a false negative."""

import numpy as np
import torch

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.methods.frozen_source import Guide, false_negatives
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS
from tests.small_data import build_dataset


def test_false_negatives_by_hand():
    scores = torch.tensor([[0.8, 0.9, 0.75, 0.1], [0.5, -0.4, -0.6, -0.3]])
    right = torch.tensor([0.8, -0.4])
    assert false_negatives(scores, right, 0.0, "absolute").tolist() == [
        [False, True, False, False],
        [True, False, False, True],
    ]
    assert false_negatives(scores, right, 0.1, "absolute").tolist()[0] == [True, True, True, False]
    assert false_negatives(scores, right, 0.05, "relative").tolist()[0] == [True, True, False, False]  # above 0.76
    # a margin leaves out more, also where the positive itself is far away
    assert false_negatives(scores, right, 0.6, "relative").tolist()[1] == [True, True, True, True]


def test_stored_vectors_are_those_that_it_computes(encoder, tmp_path):
    rows = [(a, b, [a[:7], b[:5]]) for a, b in zip(SENTENCES, OTHERS, strict=True)]
    guide = Guide(encoder).train()
    assert not guide.training
    assert not guide.encoder.training
    asked = [SENTENCES[3], OTHERS[2], SENTENCES[0][:7], OTHERS[1][:5], OTHERS[2]]
    computed = guide(asked)
    guide.prepare(build_dataset(Shape.TRIPLETS, rows), tmp_path)
    torch.testing.assert_close(guide(asked), computed, atol=1e-6, rtol=0)
    np.testing.assert_allclose(guide([*asked, ""]).norm(dim=1), 1, atol=1e-6)  # a missing negative does no harm
    assert len(list(tmp_path.glob("*.npy"))) == 1


def test_prompts_of_queries_and_documents_are_used(encoder, tmp_path):
    encoder.prompts = {"query": Prompt("find this: "), "document": Prompt("")}
    pairs = build_dataset(Shape.PAIRS, list(zip(SENTENCES, OTHERS, strict=True)))
    guide, negatives = Guide(encoder), [OTHERS[1], OTHERS[0]]
    batch = Batch({"anchor": SENTENCES[:2], "positive": OTHERS[:2]}, np.arange(2), np.arange(2), (1, 0))
    computed = guide.false_negatives(batch, negatives, -0.05, "absolute")
    q = torch.from_numpy(encoder.encode(SENTENCES[:2], role="query"))
    p, hard = (torch.from_numpy(encoder.encode(texts, role="document")) for texts in (OTHERS[:2], negatives))
    right = torch.cosine_similarity(q, p)
    for mask, left, others in zip(computed, (q, p, q), (p, q, hard), strict=True):
        cosines = torch.cosine_similarity(left[:, None], others[None], dim=-1)
        assert mask.tolist() == (cosines > right[:, None] + 0.05).tolist()
    assert not torch.allclose(guide(SENTENCES[:2], "query"), guide(SENTENCES[:2], "document"), atol=1e-3)
    guide.prepare(pairs, tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2
    for role in ("query", "document"):
        expected = torch.from_numpy(encoder.encode(SENTENCES[:3], role=role))
        stored = guide(SENTENCES[:3], role)
        torch.testing.assert_close(stored, torch.nn.functional.normalize(expected, dim=-1), atol=1e-6, rtol=0)


def test_no_weight_of_it_learns(encoder):
    assert not any(parameter.requires_grad for parameter in Guide(encoder.copy()).parameters())
    assert any(parameter.requires_grad for parameter in encoder.parameters())
    assert isinstance(Guide(encoder).encoder, Encoder)


def test_a_rehearsal_counts_every_text_once_per_role_and_encodes_no_more_in_a_step(encoder, monkeypatch):
    encoder.prompts = {"query": Prompt("find this: "), "document": Prompt("")}
    pairs = build_dataset(Shape.PAIRS, list(zip(SENTENCES, OTHERS, strict=True)))
    guide, ticks = Guide(encoder), iter((10.0, 13.0))
    monkeypatch.setattr("sentloom.methods.frozen_source.time.perf_counter", lambda: next(ticks))
    assert guide.rehearse(pairs) == 3.0 * 2  # all texts in three seconds, as queries and as documents
    monkeypatch.setattr(guide.encoder, "encode", None)
    batch = Batch({"anchor": SENTENCES[:2], "positive": OTHERS[:2]}, np.arange(2), np.arange(2), (1, 0))
    assert not torch.cat(guide.false_negatives(batch, [OTHERS[3]], 0.0, "absolute"), dim=1).any()
