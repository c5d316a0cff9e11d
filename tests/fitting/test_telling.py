"""What is told: histograms and neighbours by hand, with encoders whose vectors are known."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.telling import BINS, histogram, lie, neighbours, trail
from tests.small_data import build_dataset

ANGLES = {"one": 0.0, "eins": 0.1, "two": 1.0, "zwei": 1.1, "three": 2.0, "drei": 2.1}


class Known:
    """Texts at given angles, times something."""

    def __init__(self, times=1.0):
        self.times = times

    def encode(self, texts, role="symmetric"):
        angles = np.array([ANGLES.get(text, 3.0) * self.times for text in texts])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


@pytest.fixture
def parts():
    pairs = [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    return [HeldOut("faq.csv", build_dataset(Shape.PAIRS, pairs), (), tuple(pairs))]


def test_cosines_of_pairs_and_of_the_same_texts_paired_anew(parts):
    found = histogram(Known(), Known(0.0), parts)
    assert len(found.edges) == BINS + 1
    assert found.edges[0] == pytest.approx(np.cos(2.1), abs=1e-6)  # the least: one and drei
    assert sum(found.related_before) == sum(found.unrelated_before) == 3
    assert found.related_before[-1] == 3  # cos 0.1
    assert found.unrelated_before[-1] == 0
    assert found.related_after[-1] == found.unrelated_after[-1] == 3  # all at one place


def test_neighbours_before_and_after(parts):
    found = neighbours(Known(), Known(-1.0), [parts[0], parts[0]])
    assert found == ()  # three texts: too few to look among
    names = [f"n{number}" for number in range(8)]
    ANGLES.update({name: 0.05 * number for number, name in enumerate(names)})
    many = HeldOut("raw", build_dataset(Shape.TEXTS, [(name,) for name in names]), (), ())
    (first, *_) = neighbours(Known(), Known(2.0), [many])
    assert first.sentence == "n0"
    assert [text for _, text in first.before] == ["n1", "n2", "n3", "n4"]  # not itself
    assert first.before[0][0] == pytest.approx(np.cos(0.05), abs=1e-6)
    assert first.after[0][0] == pytest.approx(np.cos(0.1), abs=1e-6)


def test_a_trail_leaves_out_what_is_not_known(parts):
    here = lie(Known(), parts)
    assert here.alignment == pytest.approx(2 - 2 * np.cos(0.1), abs=1e-6)
    assert lie(Known(), [HeldOut("labels", parts[0].data, (), ())]) is None
    assert trail("pairs", {"base": here, "round 1": None}).points == (("base", here.alignment, here.uniformity),)
