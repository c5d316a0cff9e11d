"""Times are measured on samples, and placeholders have the shape of what a stage will produce."""

import time

import pytest

from sentloom.data.shapes import Shape
from sentloom.pipeline.stages.timing import placeholder, time_per_item, timed_steps
from tests.small_data import build_dataset

DATA = build_dataset(Shape.PAIRS, [("a", "b"), ("b", "c"), ("d", "a")])


def test_the_time_is_per_item():
    def work(items):
        for item in items:
            time.sleep(0.002)
            yield item

    assert time_per_item(work, ["a"] * 5) >= 0.002
    assert time_per_item(work, []) < 0.1


def test_slow_steps_are_timed_once():
    assert [timed_steps(seconds) for seconds in (0.1, 1.4, 2.0, 3.5)] == [3, 3, 2, 1]


@pytest.mark.parametrize("shape", [Shape.TEXTS, Shape.PAIRS, Shape.TRIPLETS])
def test_a_placeholder_repeats_every_sentence_in_every_column(shape):
    made = placeholder(DATA, shape, rows=3)
    assert (made.shape, len(made)) == (shape, 3)
    columns = made.take(range(3))
    negatives = columns.pop("negatives", None)
    assert all(column == ["a", "b", "c"] for column in columns.values())
    assert negatives == ([["a"], ["b"], ["c"]] if shape is Shape.TRIPLETS else None)
