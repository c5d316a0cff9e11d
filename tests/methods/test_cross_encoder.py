"""The teacher's scores: stored once, looked up by row, and those of the negatives that are sampled."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batch, Batches
from sentloom.data.shapes import Shape
from sentloom.methods.cross_encoder import TaughtMethod
from sentloom.methods.margin_mse import MarginMse, MarginMseOptions
from sentloom.search.cross_encoder import CrossEncoder
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS
from tests.small_data import build_dataset

ROWS = [
    (one[:20], other[:20], [f"{k} {text[:15]}" for k, text in enumerate(SENTENCES[: 1 + row % 3])])
    for row, (one, other) in enumerate(zip(SENTENCES, OTHERS, strict=True))
]  # one to three negatives


@pytest.fixture
def method(encoder, teacher):
    return MarginMse(encoder, MarginMseOptions(teacher=teacher, negatives=2))


@pytest.fixture
def data():
    return build_dataset(Shape.TRIPLETS, ROWS)


def slowly(batch: Batch, sampled: list[list[str]], teacher: str) -> np.ndarray:
    """Each pair alone."""
    model = CrossEncoder.load(teacher)
    scores = np.full((len(batch), 3), np.nan)
    for row, anchor in enumerate(batch.first):
        for place, text in enumerate([batch.second[row], *sampled[row]]):
            if text:
                scores[row, place] = model.score([(anchor, text)])[0]
    return scores


def test_scores_are_those_of_the_sampled_negatives(method, teacher, data, tmp_path):
    for step in range(3):
        batch = Batches(data, 4, seed=1).batch(step)
        sampled = method.sampled(batch)
        expected = slowly(batch, sampled, teacher)
        assert [len([text for text in row if text]) for row in sampled] == [
            min(2, len(negatives)) for negatives in batch.texts["negatives"]
        ]
        computed = method.teacher_scores(batch, torch.zeros(0))
        np.testing.assert_allclose(computed, expected, atol=1e-5)
    method.prepare(data, tmp_path)
    assert method.stored.shape == (8, 4)
    assert int(np.isnan(method.stored).sum()) == sum(3 - len(negatives) for *_, negatives in ROWS)
    np.testing.assert_allclose(method.teacher_scores(batch, torch.zeros(0)), expected, atol=1e-5)


def test_a_part_of_a_batch_has_the_same_scores(method, data, tmp_path):
    method.prepare(data, tmp_path)
    batch = Batches(data, 8, seed=1).batch(0)
    whole = method.teacher_scores(batch, torch.zeros(0, dtype=torch.float64))
    parts = [method.teacher_scores(batch.part(start, start + 3), whole) for start in (0, 3, 6)]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=0, equal_nan=True)
    vectors = [
        torch.cat(halves) for halves in zip(*(method.embed(batch.part(at, at + 4)) for at in (0, 4)), strict=True)
    ]
    for one, other in zip(vectors, method.embed(batch), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_scores_are_stored_once(method, encoder, teacher, data, tmp_path, monkeypatch):
    method.prepare(data, tmp_path)
    asked = []
    monkeypatch.setattr(CrossEncoder, "score", lambda self, pairs: asked.append(len(pairs)))
    again = MarginMse(encoder, MarginMseOptions(teacher=teacher, negatives=1))
    again.prepare(data, tmp_path)
    np.testing.assert_array_equal(again.stored, method.stored)
    assert not asked
    (path,) = tmp_path.glob("teacher-*.npy")
    path.write_bytes(b"damaged")
    again.prepare(data, tmp_path)  # the pairs themselves are in the cache
    np.testing.assert_array_equal(again.stored, method.stored)
    assert not asked


def test_a_rehearsal_needs_a_few_pairs(method, data):
    seconds = method.rehearse(data)
    assert seconds > 0
    assert method.stored.shape == (8, 4)
    batch = Batches(data, 4, seed=1).batch(0)
    assert torch.isfinite(method.loss(method.embed(batch), batch))


def test_the_teacher_is_no_part_of_the_student(method, data, tmp_path):
    method.prepare(data, tmp_path)
    assert all(name.startswith("encoder.") for name in method.state_dict())
    assert isinstance(method, TaughtMethod)
    assert method.finished() is method.encoder
