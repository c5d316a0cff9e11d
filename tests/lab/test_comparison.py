"""The table of a comparison: what is best, what is near it, and what is not scored."""

from sentloom.lab.comparison import ComparisonCell, Cost, comparison
from sentloom.lab.results import Row


def row(name, after, deviation, *, before=None, seeds=3, seconds=90.0, trained=True, **more):
    """A row; its base scores 70 on every set by default."""
    before = before or dict.fromkeys(after, 70.0)
    start = {"base": "tiny, mean", "before": before, "start": "tiny, mean", "at_start": before}
    deviation = {name: deviation.get(name) for name in after}
    rest = {"published": {}, "seconds": seconds, "trained": trained, "transductive": False, **more}
    return Row(name=name, seeds=seeds, after=after, deviation=deviation, **start, **rest)


ROWS = [
    row("simcse", {"A": 80.0, "B": 60.0}, {"A": 1.0, "B": 0.5}),
    row("mlm", {"A": 79.25}, {"A": 0.25}, seconds=30.0),  # up to 79.5, and the best from 79: they overlap
    row("bsl", {"A": 78.5, "B": 61.0}, {"A": 0.25, "B": 0.25}),  # up to 78.75: below 79
]
STEPS = {"simcse": 1200.0, "mlm": 400.0, "bsl": 1000.0}


def test_the_table_by_hand():
    table = comparison(ROWS, STEPS)
    assert table.sets == ("A", "B")
    base, simcse, mlm, bsl = table.lines
    # on B the untouched base, 70, is better than both that were trained
    assert base.cells == {"A": ComparisonCell(70.0), "B": ComparisonCell(70.0, standing="best")}
    assert base.is_base
    assert base.cost is None
    assert simcse.cells == {"A": ComparisonCell(80.0, 1.0, 10.0, "best"), "B": ComparisonCell(60.0, 0.5, -10.0)}
    assert mlm.cells == {"A": ComparisonCell(79.25, 0.25, 9.25, "near")}
    assert bsl.cells == {"A": ComparisonCell(78.5, 0.25, 8.5), "B": ComparisonCell(61.0, 0.25, -9.0)}
    assert mlm.cost == Cost(seeds=3, seconds=30.0, steps=400.0, made_seconds=0)


def test_a_deviation_that_just_touches_that_of_the_best_overlaps():
    rows = [row("a", {"A": 80.0}, {"A": 1.0}), row("b", {"A": 78.5}, {"A": 0.5}), row("c", {"A": 78.5}, {"A": 0.25})]
    assert [line.cells["A"].standing for line in comparison(rows, {}).lines] == ["", "best", "near", ""]


def test_equal_bests_are_both_bold():
    rows = [row("a", {"A": 80.0}, {"A": 1.0}), row("b", {"A": 80.0}, {"A": 2.0})]
    assert [line.cells["A"].standing for line in comparison(rows, {}).lines] == ["", "best", "best"]


def test_one_seed_has_no_deviation_and_a_note_says_what_that_means():
    rows = [row("a", {"A": 80.0}, {}, seeds=1), row("b", {"A": 79.9}, {}, seeds=1)]
    table = comparison(rows, {})
    assert [line.cells["A"].standing for line in table.lines] == ["", "best", ""]
    assert any("one seed" in note for note in table.notes)


def test_a_base_that_other_methods_are_scored_on_has_all_its_scores():
    rows = [row("a", {"A": 80.0}, {}, before={"A": 71.0}), row("b", {"B": 80.0}, {}, before={"B": 72.0})]
    assert comparison(rows, {}).lines[0].cells == {"A": ComparisonCell(71.0), "B": ComparisonCell(72.0)}


def test_means_over_different_sets_are_not_compared():
    same = [row("a", {"A": 80.0, "mean": 80.0}, {}), row("b", {"mean": 81.0, "A": 81.0}, {})]
    assert comparison(same, {}).sets == ("A", "mean")
    table = comparison([*same, row("c", {"B": 90.0, "mean": 90.0}, {})], {})
    assert table.sets == ("A", "B")
    assert any(note.startswith("no mean") for note in table.notes)
