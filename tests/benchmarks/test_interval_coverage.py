"""The simulations keep the rules that they claim to keep, and go on where they stopped."""

import numpy as np
import pytest

from benchmarks.interval_coverage import SIZES, Rows, coverage, drawn_counts, kept_line, lopsided, ranking


@pytest.mark.parametrize("rows", SIZES, ids=str)
def test_no_cluster_has_more_than_five_percent_of_the_rows(rows):
    numbers = rows.numbers()
    assert len(np.unique(numbers)) == rows.clusters >= 20
    assert np.bincount(numbers).max() <= max(1, 0.05 * len(numbers))


@pytest.mark.parametrize("make", [ranking, lopsided])
def test_models_without_a_gain_are_equal_on_average(make):
    (base,), (tuned,) = make(np.random.default_rng(0), Rows(200_000, "1", 0.0))
    assert tuned.value == pytest.approx(base.value, abs=0.3)  # the error is 0.1


def test_a_resample_of_the_old_method_has_as_many_rows():
    counts = drawn_counts(7, 0)
    assert counts.sum(axis=0).tolist() == [7] * counts.shape[1]


def test_a_finished_line_is_not_computed_again(tmp_path):
    first = kept_line(tmp_path, "Title", "name", coverage, 5, {"make": ranking, "rows": Rows(20)})
    assert set(first) == {"before", "after"}
    assert kept_line(tmp_path, "Title", "name", None, 5, {}) == first
