"""Verify: base and winner on the same tasks; text that means nothing to the base is refused."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.general import general_task
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.tasks import HeldOut, held_out
from sentloom.fitting.verify import Duel, is_not_prose, refuse_not_prose, verify
from tests.fitting import small_base
from tests.small_data import build_dataset


class ByNumber:
    """A model that knows which numbered question an answer belongs to, for a share of the numbers."""

    def __init__(self, known):
        self.prompts, self.known = {}, known

    def encode(self, texts, *, role="symmetric", show_progress=False):
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(rows, texts, strict=True):
            number = int("".join(filter(str.isdigit, text)) or 0)
            row[number % 64 if number < self.known else 63] = 1
        return rows

    def fingerprint(self):
        return f"known-{self.known}"


@pytest.fixture
def prepared():
    pairs = build_dataset(Shape.PAIRS, [(f"question {n}", f"answer {n}") for n in range(60)])
    parts = (held_out("faq.csv", pairs),)
    return Prepared((), (), (), (), parts, parts, (), general_task())


def test_a_winner_that_answers_more_questions_passes_and_general_ability_is_watched(prepared, tmp_path):
    duel = Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path))
    proof = verify(duel, prepared, validation_gain=1.0)
    assert proof.gate.passed
    assert proof.decided.after > proof.decided.before + 50
    assert [one.part for one in proof.measures] == ["deciding", "general"]
    assert not verify(duel, prepared, validation_gain=-1.0).gate.passed
    assert not verify(Duel(ByNumber(50), ByNumber(10), open_memory(tmp_path)), prepared, 1.0).gate.passed


def test_a_set_that_the_user_named_decides_and_the_test_rows_are_watched(prepared, tmp_path):
    (task,) = prepared.test[0].tasks
    against = Prepared((), (), (), (), prepared.validation, prepared.test, (task,), prepared.general)
    proof = verify(Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path)), against, 1.0)
    assert [one.part for one in proof.measures] == ["deciding", "watched", "general"]


def test_random_words_are_not_prose(tmp_path):
    texts = build_dataset(Shape.TEXTS, [(text,) for text in small_base.sentences(200, 4, 8)])
    parts: tuple[HeldOut, ...] = (held_out("raw.txt", texts),)
    prepared = Prepared((), (), (), (), parts, parts, (), general_task())
    base, memory = ByNumber(0), open_memory(tmp_path)
    assert is_not_prose(base, prepared.deciding(parts), memory)
    with pytest.raises(InputError, match="nothing can be shown on this text"):
        refuse_not_prose(base, prepared, memory)
