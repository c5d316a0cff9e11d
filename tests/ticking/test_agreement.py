"""Agreement of people: shares and kappas by hand."""

import pytest

from sentloom.ticking.estimate import agreement


def test_two_people_by_hand(answered):
    """Equal in 6 of 8. Expected by chance: 5/8 * 3/8 + 1/8 * 3/8 + 2/8 * 2/8 = 22/64, so kappa = (0.75 - p) / (1 - p).

    One says fitted 5, base 1, both 2; the other fitted 3, base 3, both 2. The interval is Wilson's.
    """
    one = answered(*["fitted"] * 5, "base", "both", "both", name="one.jsonl")
    other = answered(*["fitted"] * 3, "base", "base", "base", "both", "both", "skip", name="other.jsonl")
    found = agreement([one, other])
    chance = (15 + 3 + 4) / 64
    assert (found.queries, found.share) == (8, 75)
    assert found.kappa == pytest.approx((0.75 - chance) / (1 - chance))
    z = 1.959964
    middle, half = (0.75 + z**2 / 16) / (1 + z**2 / 8), z * (0.75 * 0.25 / 8 + z**2 / 256) ** 0.5 / (1 + z**2 / 8)
    assert (found.low, found.high) == pytest.approx((100 * (middle - half), 100 * (middle + half)), abs=1e-3)


def test_nothing_in_common_and_nothing_but_one_answer(answered):
    one = answered("fitted", "skip", name="one.jsonl")
    assert agreement([one]) is None
    assert agreement([one, answered("skip", "fitted", name="other.jsonl")]) is None
    found = agreement([one, answered("fitted", name="third.jsonl")])
    assert (found.share, found.kappa) == (100, None)


def test_three_people_are_compared_in_pairs(answered):
    people = [answered(*said, name=f"{n}.jsonl") for n, said in enumerate((["base"], ["base"], ["fitted"]))]
    assert agreement(people).share == pytest.approx(100 / 3)
