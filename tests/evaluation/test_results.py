"""Cells from scores: intervals, seeds, differences and averages, computed by hand on few items."""

import numpy as np
import pytest

from sentloom.evaluation.results import suite_result
from sentloom.evaluation.suites import LoadedSuite
from sentloom.evaluation.task import Average, Score, Task


def task(name, main="accuracy", notes=()):
    return Task(name, main, {}, lambda lookup: {}, source=f"{name}.tsv", sha256="0", notes=notes)


def right(share, n=200):
    """Build the scores of a model that is correct on the first items."""
    items = np.zeros((n, 2))
    items[: int(share * n), 0] = 1
    items[:, 1] = 1
    return {"accuracy": Score("accuracy", items)}


def suite(*names, averages=(), missing=None):
    return LoadedSuite("transfer", tuple(map(task, names)), missing or {}, tuple(averages))


def test_a_better_model_differs_and_an_equal_one_does_not():
    found = suite_result(suite("MR"), {"a": [[right(0.5)]], "b": [[right(0.8)]], "c": [[right(0.505)]]})
    a, b, c = (found.sets[0].cells[model]["accuracy"] for model in "abc")
    assert (a.value, a.difference, a.p) == (50.0, None, None)
    assert (b.value, b.difference) == (80.0, pytest.approx(30))
    assert b.significant
    assert b.p < 0.01
    assert (a.level, b.level, b.difference_low) == (0.975, 0.975, pytest.approx(30 - 7.3, abs=0.3))  # two comparisons
    assert c.difference == pytest.approx(0.5)
    assert not c.significant
    assert a.low < 50 < a.high
    assert a.high - a.low == pytest.approx(2 * 1.96 * 100 * np.sqrt(0.25 / 200), rel=0.15)  # the binomial's width


def test_seeds_give_a_mean_with_its_deviation():
    found = suite_result(suite("MR"), {"a": [[right(0.5)]], "b": [[right(0.6)], [right(0.7)], [right(0.8)]]})
    cell = found.sets[0].cells["b"]["accuracy"]
    assert (cell.value, cell.deviation, cell.difference) == pytest.approx((70.0, 10.0, 20.0))
    assert (cell.low, cell.p) == (None, None)


def test_a_nested_part_counts_once_and_missing_sets_are_reported():
    averages = [Average("five columns", ("A", "T", "P")), Average("four tasks", ("A", ("T", "P"), "gone"))]
    loaded = suite("A", "T", "P", averages=averages, missing={"gone": "no file"})
    found = suite_result(loaded, {"m": [[right(0.9), right(0.3), right(0.6)]]})
    columns, tasks = found.averages
    assert (columns.label, columns.cells["m"].value) == ("five columns", pytest.approx(60))
    assert tasks.label == "four tasks: 3 of 4 sets"
    assert tasks.cells["m"].value == pytest.approx((90 + 45) / 2)
    reason = "four tasks: 3 of 4 sets: 1 of its sets missing: not comparable with published scores"
    assert found.notes == (reason, "gone: missing, left out (no file)")
    assert (columns.cells["m"].comparable, tasks.cells["m"].comparable) == (True, False)


def test_an_average_without_any_set_is_left_out():
    assert suite_result(suite("A", averages=[Average("others", ("B", "C"))]), {"m": [[right(0.5)]]}).averages == ()


def test_notes_of_sets_and_constant_models_are_reported():
    flat = {"spearman": Score("spearman", np.column_stack([np.ones(4), np.arange(4)]))}
    loaded = LoadedSuite("sts", (task("STS12", "spearman", ("3 rows only",)),), {}, ())
    found = suite_result(loaded, {"flat": [[flat]]})
    assert found.sets[0].cells["flat"]["spearman"].value == 0.0
    assert found.notes == ("STS12: 3 rows only", "STS12: all cosines of flat are equal, which scores 0")
