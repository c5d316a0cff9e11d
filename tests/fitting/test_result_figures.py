"""Histograms, neighbours and trails by hand, with encoders whose vectors are known."""

import json

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.engine.runner import PlanResult
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.examples import LONGEST
from sentloom.fitting.figures import (
    BINS,
    MOST_POINTS,
    PairGeometry,
    collapse_warnings,
    curves,
    geometry,
    histogram,
    neighbours,
    trail,
)
from sentloom.fitting.race import TrainedRun
from sentloom.fitting.result import Run
from sentloom.fitting.tasks import HeldOut
from sentloom.training.health import Gauges
from tests.small_data import build_dataset

ANGLES = {"one": 0.0, "eins": 0.1, "two": 1.0, "zwei": 1.1, "three": 2.0, "drei": 2.1}


class Known:
    """Texts at given angles, times something."""

    def __init__(self, times=1.0):
        self.times = times

    def fingerprint(self):
        return f"{self.times}"

    def encode(self, texts, role="symmetric", show_progress=False):
        angles = np.array([ANGLES.get(text, 3.0) * self.times for text in texts])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


@pytest.fixture
def memory(tmp_path):
    return open_memory(tmp_path)


@pytest.fixture
def parts():
    pairs = [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    return [HeldOut("faq.csv", build_dataset(Shape.PAIRS, pairs), (), tuple(pairs))]


def test_cosines_of_pairs_and_of_the_same_texts_paired_differently(parts, memory):
    bins = histogram(Known(), Known(0.0), parts, memory)
    assert len(bins.edges) == BINS + 1
    assert bins.edges[0] == pytest.approx(np.cos(2.1), abs=1e-6)  # the least: one and drei
    assert sum(bins.related_before) == sum(bins.unrelated_before) == 3
    assert bins.related_before[-1] == 3  # cos 0.1
    assert bins.unrelated_before[-1] == 0
    assert bins.related_after[-1] == bins.unrelated_after[-1] == 3  # all at one place


def test_neighbours_before_and_after(parts, memory):
    nearest = neighbours(Known(), Known(-1.0), [parts[0], parts[0]], memory)
    assert nearest == ()  # three texts: too few to look among
    names = [f"n{number}" for number in range(8)]
    ANGLES.update({name: 0.05 * number for number, name in enumerate(names)})
    many = HeldOut("raw", build_dataset(Shape.TEXTS, [(name,) for name in names]), (), ())
    (first, *_) = neighbours(Known(), Known(2.0), [many], memory)
    assert first.sentence == "n0"
    assert [text for _, text in first.before] == ["n1", "n2", "n3", "n4"]  # not itself
    assert first.before[0][0] == pytest.approx(np.cos(0.05), abs=1e-6)
    assert first.after[0][0] == pytest.approx(np.cos(0.1), abs=1e-6)


def test_long_texts_are_cut(memory):
    texts = [f"{number} {'long ' * 20_000}" for number in range(8)]
    many = HeldOut("raw", build_dataset(Shape.TEXTS, [(text,) for text in texts]), (), ())
    for neighbour in neighbours(Known(), Known(), [many], memory):
        assert (
            max(map(len, (neighbour.sentence, *(text for _, text in (*neighbour.before, *neighbour.after)))))
            == LONGEST + 3
        )


def test_a_curve_of_a_long_training_has_some_of_its_points(tmp_path):
    lines = [json.dumps({"step": step, "loss": 1 / step}) for step in range(1, 5001)]
    (tmp_path / "learn").mkdir()
    (tmp_path / "learn" / "log.jsonl").write_text("\n".join(lines) + "\n")
    stage = {"produces": "encoder", "stage": "learn", "place": "learn", "seconds": 1.0}
    result = PlanResult("pairs", 1, None, "", {}, "", {}, {}, (stage,))
    (loss_curve,) = curves(TrainedRun(Run("pairs", 1, 10, 0.0, None, None, None, None, ""), None, result), tmp_path)
    assert (len(loss_curve.steps), loss_curve.steps[0], loss_curve.steps[-1]) == (MOST_POINTS, 1, 5000)
    assert loss_curve.loss == tuple(1 / step for step in loss_curve.steps)


def test_a_trail_leaves_out_what_is_not_known(parts, memory):
    here = geometry(Known(), parts, memory)
    assert here.alignment == pytest.approx(2 - 2 * np.cos(0.1), abs=1e-6)
    assert geometry(Known(), [HeldOut("labels", parts[0].data, (), ())], memory) is None
    points = (("base", here.alignment, here.gauges.uniformity),)
    assert trail("pairs", {"base": here, "round 1": None}).points == points


def test_collapsed_vectors_get_a_warning(parts, memory):
    before, after = (geometry(Known(times), parts, memory) for times in (1.0, 0.01))
    best = TrainedRun(Run("pairs", 1, 10, 0.0, None, None, None, None, ""), None, None)
    (warning,) = collapse_warnings({"base": before, "round 1": after}, best)
    assert warning.startswith("The vectors have collapsed: mean cosine of distinct sentences")
    assert not list(collapse_warnings({"base": before, "round 1": before}, best))
    assert not list(collapse_warnings({"base": None, "round 1": None}, best))


def test_half_of_the_rank_lost_is_a_warning_and_less_is_not():
    def with_rank(rank):
        return PairGeometry(0.3, Gauges(mean_cosine=0.1, effective_rank=rank, deviation=1.0, uniformity=-3.0))

    best = TrainedRun(Run("pairs", 1, 10, 0.0, None, None, None, None, ""), None, None)
    assert list(collapse_warnings({"base": with_rank(200.0), "round 1": with_rank(99.0)}, best))
    assert not list(collapse_warnings({"base": with_rank(200.0), "round 1": with_rank(101.0)}, best))
