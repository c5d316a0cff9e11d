"""Methods against each other: the best is where it must be, what is near it is marked, and what is not scored is blank."""

import csv
import io
import re

from rich.console import Console

from sentloom.pipeline.results import Row
from sentloom.report.comparison_tables import ComparisonCell, Cost, as_csv, as_markdown, comparison, table


def row(name, after, deviation, *, before=None, seeds=3, seconds=90.0, trained=True, **more):
    """A row; its base scores 70 on every set unless told."""
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


def printed(part, width=120):
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(part)
    return console.export_text(styles=True)


def test_the_table_by_hand():
    found = comparison(ROWS, STEPS)
    assert found.sets == ("A", "B")
    base, simcse, mlm, bsl = found.lines
    # on B the untouched base, 70, is better than both that were trained
    assert base.cells == {"A": ComparisonCell(70.0), "B": ComparisonCell(70.0, standing="best")}
    assert base.is_base
    assert base.cost is None
    assert simcse.cells == {"A": ComparisonCell(80.0, 1.0, 10.0, "best"), "B": ComparisonCell(60.0, 0.5, -10.0)}
    assert mlm.cells == {"A": ComparisonCell(79.25, 0.25, 9.25, "near")}
    assert bsl.cells == {"A": ComparisonCell(78.5, 0.25, 8.5), "B": ComparisonCell(61.0, 0.25, -9.0)}
    assert mlm.cost == Cost(seeds=3, seconds=30.0, steps=400.0, made_seconds=0)


def test_markdown_by_hand():
    assert as_markdown(comparison(ROWS, STEPS)).splitlines()[:6] == [
        "| method | A | B | seeds | minutes a seed | steps a seed |",
        "|---|---:|---:|---:|---:|---:|",
        "| tiny, mean, untouched | 70.00 | **70.00** |  |  |  |",
        "| simcse | **80.00 ± 1.00 (+10.00)** | 60.00 ± 0.50 (-10.00) | 3 | 1.5 | 1,200 |",
        "| mlm | ≈ 79.25 ± 0.25 (+9.25) |  | 3 | 0.5 | 400 |",
        "| bsl | 78.50 ± 0.25 (+8.50) | 61.00 ± 0.25 (-9.00) | 3 | 1.5 | 1,000 |",
    ]


def test_no_name_in_the_csv_is_run_as_a_formula():
    found = comparison([row("=run()", {"@set": 60.5}, {"@set": 0.5})], {"=run()": 10.0})
    lines = list(csv.reader(io.StringIO(as_csv(found))))[1:]
    assert [line[:3] for line in lines] == [["tiny, mean, untouched", "'@set", "70.0"], ["'=run()", "'@set", "60.5"]]
    assert "-9.5" in lines[1]  # numbers stay


def test_the_signs_are_explained_below_the_table_where_they_stand():
    notes = as_markdown(comparison(ROWS, STEPS)).splitlines()[6:]
    assert any(note.startswith("- ≈: not clearly worse") for note in notes)
    assert "≈" not in as_markdown(comparison([ROWS[0], ROWS[2]], STEPS))


def test_a_deviation_that_just_touches_that_of_the_best_overlaps():
    rows = [row("a", {"A": 80.0}, {"A": 1.0}), row("b", {"A": 78.5}, {"A": 0.5}), row("c", {"A": 78.5}, {"A": 0.25})]
    assert [line.cells["A"].standing for line in comparison(rows, {}).lines] == ["", "best", "near", ""]


def test_equal_bests_are_both_bold():
    rows = [row("a", {"A": 80.0}, {"A": 1.0}), row("b", {"A": 80.0}, {"A": 2.0})]
    assert [line.cells["A"].standing for line in comparison(rows, {}).lines] == ["", "best", "best"]


def test_the_terminal_shows_the_best_in_bold_and_no_other_score():
    text = printed(table("Methods", comparison(ROWS, STEPS)))
    bold = [part.strip() for part in re.findall(r"\x1b\[1m(.*?)\x1b\[0m", text) if re.search(r"\d", part)]
    assert bold == ["70.00", "80.00 ± 1.00 (+10.00)"]
    assert all(other in text for other in ("≈ 79.25", "78.50", "60.00", "61.00"))


def test_no_number_is_cut_where_the_terminal_is_narrow():
    rows = [row("a", dict.fromkeys("ABCDEFG", 80.0), dict.fromkeys("ABCDEFG", 1.0))]
    assert printed(table("Methods", comparison(rows, {"a": 5.0})), width=80).count("80.00 ± 1.00 (+10.00)") == 7


def test_one_seed_has_no_deviation_and_a_note_says_what_that_means():
    rows = [row("a", {"A": 80.0}, {}, seeds=1), row("b", {"A": 79.9}, {}, seeds=1)]
    found = comparison(rows, {})
    assert [line.cells["A"].standing for line in found.lines] == ["", "best", ""]
    assert any("one seed" in note for note in found.notes)


def test_a_base_that_other_methods_are_scored_on_has_all_its_scores():
    rows = [row("a", {"A": 80.0}, {}, before={"A": 71.0}), row("b", {"B": 80.0}, {}, before={"B": 72.0})]
    assert comparison(rows, {}).lines[0].cells == {"A": ComparisonCell(71.0), "B": ComparisonCell(72.0)}


def test_means_over_different_sets_are_not_compared():
    same = [row("a", {"A": 80.0, "mean": 80.0}, {}), row("b", {"mean": 81.0, "A": 81.0}, {})]
    assert comparison(same, {}).sets == ("A", "mean")
    found = comparison([*same, row("c", {"B": 90.0, "mean": 90.0}, {})], {})
    assert found.sets == ("A", "B")
    assert any(note.startswith("no mean") for note in found.notes)


def test_what_is_made_once_has_a_column_where_something_is():
    made = [{"stage": "writer", "method": "synthesizer", "result": "", "seconds": 120.0, "place": "stages/x"}]
    text = as_markdown(comparison([*ROWS, row("gense", {"A": 1.0}, {}, made=made)], STEPS))
    assert "| steps a seed | minutes, made once |" in text
    assert text.splitlines()[6].endswith("| 0 | 2.0 |")


def test_files_go_by_their_names_unless_two_have_the_same():
    rows = [row("a", {"/x/faq.tsv": 1.0, "/x/sts.tsv": 1.0, "/y/sts.tsv": 1.0}, {})]
    head = as_markdown(comparison(rows, {})).splitlines()[0]
    assert head.startswith("| method | faq.tsv | /x/sts.tsv | /y/sts.tsv |")


def test_a_bar_in_a_name_does_not_break_the_table():
    line = as_markdown(comparison([row("a|b", {"A": 80.0}, {})], {})).splitlines()[3]
    assert line.startswith(r"| a\|b |")


def test_csv_has_a_row_a_method_and_set():
    found = list(csv.DictReader(io.StringIO(as_csv(comparison(ROWS, STEPS)))))
    assert [(one["method"], one["set"]) for one in found[:4]] == [
        ("tiny, mean, untouched", "A"),
        ("tiny, mean, untouched", "B"),
        ("simcse", "A"),
        ("simcse", "B"),
    ]
    simcse = found[2]
    numbers = [float(simcse[name]) for name in ("score", "deviation", "change", "seconds", "steps")]
    assert numbers == [80.0, 1.0, 10.0, 90.0, 1200.0]
    assert simcse["standing"] == "best"
    assert found[0]["seconds"] == ""


def test_names_mean_nothing_in_markdown():
    script = "<script>alert(1)</script>\n| **x**"
    lines = as_markdown(comparison([row(script, {script: 80.0}, {script: 1.0})], {})).splitlines()
    assert not any("<" in line for line in lines)
    assert r"\*\*x\*\*" in lines[0]
    assert len({line.replace(r"\|", "").count("|") for line in lines[:4]}) == 1
