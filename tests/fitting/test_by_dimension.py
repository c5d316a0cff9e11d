"""Scores by dimension: as if vectors had been cut by hand, without encoding anything again."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.tasks import held_out
from sentloom.fitting.verify import Duel, Shortened, dimension_measures, dimensions_in_time
from tests.fitting.small_job import job_in, still
from tests.small_data import build_dataset

WIDTH, QUESTIONS = 16, 40


class Coded:
    """A question and its answer share a random code, whose dimensions from `useful` on are noise."""

    def __init__(self, useful):
        self.prompts, self.useful, self.encoded = {}, useful, 0
        self.dimension = WIDTH

    def encode(self, texts, *, role="symmetric", show_progress=False):
        self.encoded += len(texts)
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    def _vector(self, text):
        code = np.random.default_rng(int(text.split()[1])).normal(size=WIDTH)
        noise = np.random.default_rng([1, *text.encode()]).normal(size=WIDTH)
        return np.where(np.arange(WIDTH) < self.useful, code, 3 * noise)

    def fingerprint(self):
        return f"coded-{self.useful}"


@pytest.fixture
def tasks():
    pairs = build_dataset(Shape.PAIRS, [(f"question {n}", f"answer {n}") for n in range(QUESTIONS)])
    return held_out("faq.csv", pairs).tasks


def test_noise_beyond_the_useful_dimensions_no_longer_counts(tasks, tmp_path):
    duel = Duel(Coded(4), Coded(8), open_memory(tmp_path))
    whole, eight, four = dimension_measures(duel, tasks, (16, 8, 4))
    assert [measured.name for measured in (whole, eight, four)] == ["16", "8", "4"]
    assert eight.after == pytest.approx(100)  # nothing but the code is left
    assert four.before == four.after == pytest.approx(100)
    assert whole.after < eight.after
    assert whole.before == pytest.approx(score_tasks(duel.base, tasks)[0][tasks[0].main].value)
    assert (eight.part, eight.items) == ("watched", QUESTIONS)


def test_whole_vectors_are_encoded_once(tasks, tmp_path):
    duel = Duel(Coded(4), Coded(8), open_memory(tmp_path))
    dimension_measures(duel, tasks, (16, 8, 4, 2))
    assert duel.after.encoded == 2 * QUESTIONS


def test_every_dimension_is_measured_while_there_is_time(tasks, tmp_path):
    """The clock is looked at once for each dimension, and finds 20 s less of 55, of which 5 are for the report."""
    duel = Duel(Coded(4), Coded(8), open_memory(tmp_path))
    duel.after.dimensions = (16, 8, 4, 2)
    ample, clock = job_in(tmp_path), still(65.0)
    assert [measure.name for measure in dimensions_in_time(ample, duel, tasks)] == ["16", "8", "4", "2"]
    clock.now = iter([20.0, 40.0, 61.0, 81.0]).__next__
    short = job_in(tmp_path, clock=clock)
    assert [measure.name for measure in dimensions_in_time(short, duel, tasks)] == ["16", "8"]
    gone = ("the score with 4 dimensions is not measured", "the score with 2 dimensions is not measured")
    assert short.plan.changes == gone


def test_shortened_vectors_have_unit_length(tmp_path):
    short = Shortened(Coded(8), 4, open_memory(tmp_path))
    vectors = short.encode(["question 1", "answer 1"])
    assert vectors.shape == (2, 4)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert vectors[0] == pytest.approx(vectors[1])
    assert short.fingerprint() == "coded-8-4"


def test_a_base_with_shorter_vectors_is_scored_whole(tasks, tmp_path):
    small = Coded(4)
    small.dimension = 4
    measures = dimension_measures(Duel(small, Coded(8), open_memory(tmp_path)), tasks, (8,))
    assert measures[0].before == pytest.approx(score_tasks(small, tasks)[0][tasks[0].main].value)
