"""Pictures: round ticks, and points where they should stand."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.fitting.result import Curve, Trail
from sentloom.report.svg import Frame, _digits, loss_curve, ticks, trails


@settings(max_examples=30)
@given(low=st.floats(-1e4, 1e4), wide=st.floats(1e-3, 1e4))
def test_ticks_are_round_and_inside(low, wide):
    found = ticks(low, low + wide)
    step = wide / 1000
    assert 1 <= len(found) <= 6
    assert all(low - step <= tick <= low + wide + step for tick in found)
    if len(found) > 1:
        between = found[1] - found[0]
        leading = between / 10 ** math.floor(math.log10(between) + 1e-6)
        assert min(abs(leading - round_one) for round_one in (1, 2, 5, 10)) < 1e-3


def test_ticks_by_hand():
    assert ticks(0, 17.5) == [0, 5, 10, 15]
    assert ticks(-0.2, 1.0, 5) == pytest.approx([0.0, 0.5, 1.0])


def test_numbers_at_ticks_have_the_decimals_that_they_need():
    picture = trails([Trail("a", (("base", 0.8, -1.6), ("end", 0.1, -3.0)))], "a")
    numbers = re.findall(r'x="36.0" y="[\d.]+">([^<]+)<', picture)
    assert numbers == ["0.0", "0.2", "0.4", "0.6", "0.8"]  # from 0.1 and 0.8, with a margin of 0.16 of the range
    assert _digits([0.5]) == 1
    assert _digits([0.0, 200.0]) == 0


def test_corners_of_a_frame():
    frame = Frame(0, 10, -1, 1)
    assert frame.at((0, -1)) == (42, 192)  # left and lower margin of a picture of 360 by 232
    assert frame.at((10, 1)) == (346, 16)
    assert frame.at((5, 0)) == (194, 104)


def test_a_short_curve_is_drawn_through_its_values():
    picture = loss_curve(Curve("r", "s", (0, 1, 2), (1.0, 0.5, 0.0)))
    assert re.search(r'class="way main" d="M42.0,16.0 194.0,104.0 346.0,192.0"', picture)


def test_values_that_are_no_numbers_are_passed_over():
    picture = loss_curve(Curve("r", "s", (0, 1, 2), (1.0, float("nan"), 0.0)))
    assert re.search(r'class="way raw" d="M42.0,16.0 346.0,192.0"', picture)


def test_trails_name_the_base_once_and_every_route():
    found = trails(
        [Trail("a", (("base", 0.4, -2.0), ("end", 0.3, -3.0))), Trail("b", (("base", 0.4, -2.0), ("end", 0.5, -2.5)))],
        "a",
    )
    labels = re.findall(r"<text[^>]*>([a-z]+)</text>", found)
    assert sorted(labels) == ["a", "b", "base"]
    assert found.count('class="strong"') == 1
    assert found.index("b, end") < found.index("a, end")  # the winner is drawn over the others
