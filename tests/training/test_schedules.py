"""The learning rate of every step, against values worked out by hand."""

import math

import pytest

from sentloom.training.optimizers import rate

# 10 steps, of which 4 warm up.
HAND = {
    "linear": [0, 1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6],
    "constant-then-linear": [1, 1, 1, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6],
    "constant": [0, 1 / 4, 2 / 4, 3 / 4, 1, 1, 1, 1, 1, 1],
    # the last 3 of 10 fall
    "warmup-stable-decay": [0, 1 / 4, 2 / 4, 3 / 4, 1, 1, 1, 1, 2 / 3, 1 / 3],
    # (1 + cos 0, 30, 60, 90, 120, 150 degrees) / 2
    "cosine": [0, 0.25, 0.5, 0.75, 1, (2 + 3**0.5) / 4, 0.75, 0.5, 0.25, (2 - 3**0.5) / 4],
}


@pytest.mark.parametrize("schedule", HAND)
def test_rates_by_hand(schedule):
    rates = [rate(schedule, step, 10, 0.4, decay=0.3) for step in range(10)]
    assert rates == pytest.approx(HAND[schedule])


@pytest.mark.parametrize("schedule", HAND)
def test_without_warmup_the_first_step_has_the_whole_rate(schedule):
    assert rate(schedule, 0, 5, 0.0) == 1
    assert rate(schedule, 0, 1, 0.0) == 1
    assert rate(schedule, 0, 5, 0) == 1


@pytest.mark.parametrize("schedule", HAND)
def test_all_warmup_and_one_step_are_finite(schedule):
    for total in (1, 2, 7):
        for step in range(total):
            assert 0 <= rate(schedule, step, total, 1.0) <= 1
    assert math.isfinite(rate(schedule, 7, 7, 1.0))


@pytest.mark.parametrize("schedule", HAND)
def test_a_warmup_may_be_given_in_steps(schedule):
    assert [rate(schedule, step, 10, 4, 0.3) for step in range(10)] == pytest.approx(HAND[schedule])


def test_a_longer_run_has_the_rates_of_a_shorter_one_until_its_decay():
    short, long = ([rate("warmup-stable-decay", step, total, 5, 0.1) for step in range(total)] for total in (40, 100))
    assert short[:36] == long[:36]
    assert short[37] < long[37] == 1
    assert long[99] == pytest.approx(0.1)


def test_the_decay_factor_of_t5x():
    # min(step / warmup, 1 + factor * (warmup - step)) with 4 steps of warm-up, never below 0
    rates = [rate("linear", step, 10, 0.4, decay_factor=0.25) for step in range(10)]
    assert rates == pytest.approx([0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0, 0])
