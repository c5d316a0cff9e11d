"""Agreement with a teacher: disjoint pairs from near to far, and a teacher that agrees with itself."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.evaluation.bench import main_scores
from sentloom.export.shrink import agreement_task, disjoint_pairs
from tests.encoder.small_models import SENTENCES


@pytest.mark.parametrize("count", [0, 1, 2, 7, 300])
def test_every_text_is_in_one_pair(count):
    pairs = disjoint_pairs(np.random.default_rng(1).normal(size=(count, 8)).astype(np.float32))
    assert len(pairs) == count // 2
    assert len(np.unique(pairs)) == 2 * len(pairs)


def test_pairs_are_closer_than_random_ones_but_not_all_nearest():
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    left, right = disjoint_pairs(vectors).T
    cosines = (vectors[left] * vectors[right]).sum(axis=1)
    assert cosines.mean() > 0.3  # of random ones it is 0
    assert cosines.min() < -0.3


def test_the_teacher_scores_100_and_another_model_less(bert):
    texts = [f"{text} {number}" for text in SENTENCES for number in range(6)]
    task = agreement_task(Encoder.load(bert), texts)
    assert main_scores(Encoder.load(bert), [task])[0].value == pytest.approx(100)
    assert main_scores(Encoder.load(bert, pooling="max"), [task])[0].value < 99
