"""Times are measured on samples, and placeholders have the shape of what a stage will produce."""

import time

import pytest
import torch
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.stages import timing
from sentloom.engine.stages.timing import placeholder, time_per_item, training_time
from sentloom.methods import Method
from sentloom.methods.settings import Settings
from tests.small_data import build_dataset

DATA = build_dataset(Shape.PAIRS, [("a", "b"), ("b", "c"), ("d", "a")])


def test_the_time_is_per_item():
    def work(items):
        for item in items:
            time.sleep(0.002)
            yield item

    assert time_per_item(work, ["a"] * 5) >= 0.002
    assert time_per_item(work, []) < 0.1


class Sleeper(Method):
    """Its steps take a time that depends on the rows alone, and it remembers how many it saw."""

    def __init__(self, per_row):
        super().__init__(None, None)
        self.weight, self.per_row, self.seen = torch.nn.Parameter(torch.zeros(1)), per_row, []

    def embed(self, batch):
        self.seen.append(len(batch))
        time.sleep(self.per_row * len(batch))
        return (self.weight.expand(len(batch), 1),)

    def loss(self, embeddings, batch):
        return embeddings[0].sum()


@pytest.mark.parametrize(
    ("per_row", "rows"),
    [
        (0.04, [8, 8]),
        (0.014, [8, 8, 32]),
        (0.001, [8, 8, 32, 32, 32]),
    ],  # a batch of 32 takes 1.28, 0.45 or 0.03 seconds
)
def test_long_steps_are_timed_on_a_part_of_the_batch_and_others_until_that_is_enough(monkeypatch, per_row, rows):
    monkeypatch.setattr(timing, "LONG", 1.0)
    monkeypatch.setattr(timing, "ENOUGH", 0.36)
    pairs = build_dataset(Shape.PAIRS, [(f"a {n}", f"b {n}") for n in range(64)])
    method = Sleeper(per_row)
    steps, seconds = training_time(method, pairs, Settings(batch=32, epochs=2), 1, Accelerator())
    assert (steps, method.seen) == (4, rows)
    assert seconds / steps == pytest.approx(32 * per_row, rel=0.5, abs=0.05)


@pytest.mark.parametrize("shape", [Shape.TEXTS, Shape.PAIRS, Shape.TRIPLETS])
def test_a_placeholder_repeats_every_sentence_in_every_column(shape):
    made = placeholder(DATA, shape, rows=3)
    assert (made.shape, len(made)) == (shape, 3)
    columns = made.take(range(3))
    negatives = columns.pop("negatives", None)
    assert all(column == ["a", "b", "c"] for column in columns.values())
    assert negatives == ([["a"], ["b"], ["c"]] if shape is Shape.TRIPLETS else None)
