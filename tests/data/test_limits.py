"""Limits: unusable rows, unpacked bytes, and names in messages."""

import pytest

from sentloom.data.limits import CLEANING, FITTING, STRICT, Allowance, listed, packed_room, shown


@pytest.mark.parametrize(
    ("allowance", "rows", "most"),
    [(STRICT, 1000, 0), (FITTING, 100, 10), (FITTING, 1000, 50), (CLEANING, 5, 10), (Allowance(0.5), 7, 3)],
)
def test_the_larger_of_share_and_number_is_allowed(allowance: Allowance, rows: int, most: int) -> None:
    assert allowance.most(rows) == most


def test_small_files_may_unpack_to_100_mb_and_larger_ones_to_200_times_their_size_up_to_1_tb() -> None:
    assert [packed_room(size) for size in (1, 500_000, 500_001, 10**12)] == [10**8, 10**8, 10**8 + 200, 10**12]


def test_names_in_messages_are_cut_at_60_characters_and_after_20_names() -> None:
    assert (shown("a" * 60), shown("a" * 61)) == ("a" * 60, "a" * 60 + "...")
    names = [str(number) for number in range(22)]
    assert listed(names[:2]) == "0, 1"
    assert listed(names[:20]) == ", ".join(names[:20])
    assert listed(names) == ", ".join(names[:20]) + " and 2 more"
