"""The simulation of ticks: its draws follow the design, and its tables have all lines."""

import numpy as np
import pytest

from benchmarks.tick_coverage import DESIGNS, coverage, drawn, power, stopping


def test_draws_follow_the_design():
    """Of 20,000 queries 30% differ; the mean value of a stratum is the difference of its chances."""
    design = next(one for one in DESIGNS if one.name == "a gain")
    sizes, strata, values = drawn(design, 20_000, np.random.default_rng(0))
    assert sum(sizes) == len(values) == pytest.approx(6000, rel=0.05)
    for stratum in range(3):
        expected = design.wins[stratum] - design.losses[stratum]
        assert values[strata == stratum].mean() == pytest.approx(expected, abs=0.06)
    assert design.gain == pytest.approx(7.0), "0.3 times the mean of 0.1, 0.2 and 0.4"


def test_every_table_has_its_lines():
    assert len(list(coverage(2))) == 2 * len(DESIGNS)
    assert len(list(stopping(1))) == 3
    assert [row[0] for row in power(1)] == ["+1"] * 3 + ["+2"] * 3 + ["+5"] * 3
