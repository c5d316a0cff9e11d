"""The general triplets: what they are, and that they tell encoders apart."""

import re
from itertools import chain

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.fitting.evaluation_sets import general_task


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, str, str]]:
    texts = general_task().texts
    anchors, documents = texts["query"], texts["document"]
    return list(zip(anchors, documents[: len(anchors)], documents[len(anchors) :], strict=True))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_there_are_240_and_no_text_comes_twice(rows) -> None:
    texts = [" ".join(sorted(words(text))) for text in chain(*rows)]
    assert len(rows) == 240
    assert len(set(texts)) == 3 * 240


def test_they_are_plain_sentences(rows) -> None:
    for text in chain(*rows):
        assert text.isascii()
        assert text == " ".join(text.split())
        assert text[-1] in ".?"
        assert 3 <= len(text.split()) <= 20


def test_negatives_share_words_that_carry_the_sentence(rows) -> None:
    """With the positive, so that words alone do not decide; in every sixth row with the anchor, so that they mislead."""
    shared = [(len(words(a) & words(n)), len(words(p) & words(n))) for a, p, n in rows]
    assert min(max(pair) for pair in shared) >= 2
    assert np.mean([with_positive > with_anchor for with_anchor, with_positive in shared]) == pytest.approx(
        5 / 6, abs=0.02
    )
    overlap = [len(words(a) & words(p)) / len(words(a) | words(p)) for a, p, _ in rows]
    misled = [len(words(a) & words(n)) / len(words(a) | words(n)) for a, _, n in rows]
    assert np.mean(np.array(overlap) > np.array(misled)) < 0.6  # what counting common words would score


def test_its_score_is_an_accuracy_with_an_item_a_row() -> None:
    task = general_task()
    score = task.score(lambda texts, role="symmetric": np.ones((len(texts), 2)))["accuracy"]
    assert (task.main, len(score.items), score.value) == ("accuracy", 240, 0)  # as near is not nearer


def test_the_embedded_encoder_is_neither_perfect_nor_lost() -> None:
    encoder = Encoder.load("embedded")
    score = general_task().score(lambda texts, role="symmetric": np.asarray(encoder.encode(list(texts))))["accuracy"]
    assert 75 < score.value < 90
