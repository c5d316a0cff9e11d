"""Encoding is timed on a sample of texts, and paid for by the character."""

import time
from types import SimpleNamespace

import pytest

from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.user_tasks import triplet_task
from sentloom.fitting.budget import BESIDES, PER_TOKEN, Speed, measure_speed


class Slow:
    """An encoder that reads two tokens, and takes a millisecond per text."""

    tokens = SimpleNamespace(max_length=2)

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen += texts
        time.sleep(0.001 * len(texts))


def test_texts_are_timed_on_a_sample():
    slow = Slow()
    speed = measure_speed(slow, [f"{n:04}" for n in range(1000)])
    assert (len(slow.seen), slow.seen[0], slow.seen[-1]) == (64, "0000", "0999")
    assert 0.001 <= speed.per_text < 0.01
    assert (speed.size, speed.longest) == (BESIDES + 4, 2 * PER_TOKEN)
    assert measure_speed(Slow(), ["one"]).per_text >= 0.001


def test_what_an_encoder_does_not_read_costs_nothing():
    assert measure_speed(Slow(), ["a" * 500, "b" * 4]).size == BESIDES + (2 * PER_TOKEN + 4) / 2


def test_short_texts_cost_less_than_long_ones():
    """Texts of 90 characters took a second each; a triplet of 10, 20 and 200 characters, of which 140 are read."""
    speed = Speed(per_text=1.0, size=90 + BESIDES, longest=140)
    rows = Rows({"anchor": ["a" * 10], "positive": ["b" * 20], "negatives": [["c" * 200]]}, "own")
    characters = 10 + 20 + 140 + 3 * BESIDES
    assert speed.seconds([triplet_task("own", rows)]) == pytest.approx(characters / 100)
