"""Verify: base and winner on the same tasks; text that means nothing to the base is refused."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import corrected_level
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Run
from sentloom.fitting.tasks import HeldOut, held_out
from sentloom.fitting.verify import Duel, Trial, is_not_prose, refuse_not_prose
from sentloom.fitting.verify import verify as verify_in
from tests.fitting import small_base
from tests.fitting.small_job import job_in, still
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


def run(gain):
    return Run("pairs", 1, 10, 0.0, 60.0, gain, gain - 1, gain + 1, "best")


def verify(duel, prepared, best, runs, job=None):
    """Without a clock, if no job is given."""
    return verify_in(duel, prepared, Trial(best, runs), job or job_in(duel.memory.scores.parent))


@pytest.fixture
def prepared():
    pairs = build_dataset(Shape.PAIRS, [(f"question {n}", f"answer {n}") for n in range(60)])
    parts = (held_out("faq.csv", pairs),)
    return Prepared((), (), (), (), parts, parts, (), general_task())


def test_a_winner_that_answers_more_questions_passes_and_general_ability_is_watched(prepared, tmp_path):
    duel = Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path))
    proof = verify(duel, prepared, run(1.0), 3)
    assert proof.gate.passed
    assert proof.decided.after > proof.decided.before + 50
    assert [measured.part for measured in proof.measures] == ["deciding", "general"]
    assert not verify(duel, prepared, run(-1.0), 3).gate.passed
    assert (
        verify(Duel(ByNumber(50), ByNumber(10), open_memory(tmp_path)), prepared, run(1.0), 3).gate.verdict == "worse"
    )


def test_every_model_that_is_tested_makes_the_next_interval_wider(prepared, tmp_path):
    proofs = [
        verify(Duel(ByNumber(10), ByNumber(50 + n), open_memory(tmp_path)), prepared, run(1.0), 3) for n in range(3)
    ]
    assert [proof.uses.number for proof in proofs] == [1, 2, 3]
    assert [proof.decided.level for proof in proofs] == [corrected_level(number) for number in (1, 2, 3)]


def test_what_was_won_is_shown(prepared, tmp_path):
    proof = verify(Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path)), prepared, run(1.0), 3)
    assert proof.won[0].expected == proof.won[0].found_after
    assert proof.lost == ()


def test_a_set_that_the_user_named_decides_and_the_test_rows_are_watched(prepared, tmp_path):
    (task,) = prepared.test[0].tasks
    against = Prepared((), (), (), (), prepared.validation, prepared.test, (task,), prepared.general)
    proof = verify(Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path)), against, run(1.0), 3)
    assert [measured.part for measured in proof.measures] == ["deciding", "watched", "general"]


def test_what_there_is_no_time_for_is_not_measured(prepared, tmp_path):
    duel = Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path))
    late = job_in(tmp_path, clock=still(60.0, gone=60.0))
    proof = verify(duel, prepared, run(1.0), 3, late)
    assert [measured.part for measured in proof.measures] == ["deciding"]
    assert proof.gate.passed
    (task,) = prepared.test[0].tasks
    against = replace(prepared, against=(replace(task, name="asked.csv"),))
    assert verify(duel, against, run(1.0), 3).threshold is not None
    proof = verify(duel, against, run(1.0), 3, late)
    assert ([measured.name for measured in proof.measures], proof.threshold) == (["asked.csv"], None)
    assert not proof.tested
    assert late.plan.changes == (
        "general ability is not measured",
        "the score on the data's own test rows is not measured",
    )


def test_test_rows_that_are_only_watched_are_used_too(prepared, tmp_path):
    (asked,) = held_out(
        "asked.csv", build_dataset(Shape.PAIRS, [(f"asked {n}", f"answer {n}") for n in range(60)])
    ).tasks
    against = Prepared((), (), (), (), prepared.validation, prepared.test, (asked,), prepared.general)
    proof = verify(Duel(ByNumber(10), ByNumber(50), open_memory(tmp_path)), against, run(1.0), 3)
    assert (proof.uses.number, proof.measures[1].level) == (1, 0.95)
    later = verify(Duel(ByNumber(10), ByNumber(51), open_memory(tmp_path)), prepared, run(1.0), 3)
    assert (later.uses.number, later.decided.level) == (2, corrected_level(2))


def test_random_words_are_not_prose(tmp_path):
    texts = build_dataset(Shape.TEXTS, [(text,) for text in small_base.sentences(200, 4, 8)])
    parts: tuple[HeldOut, ...] = (held_out("raw.txt", texts),)
    prepared = Prepared((), (), (), (), parts, parts, (), general_task())
    base, memory = ByNumber(0), open_memory(tmp_path)
    assert is_not_prose(base, prepared.deciding(parts), memory)
    with pytest.raises(InputError, match="nothing can be shown on this text"):
        refuse_not_prose([base], prepared, memory)
