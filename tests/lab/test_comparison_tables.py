"""A comparison in the terminal, in Markdown and in CSV."""

import csv
import io
import re

from rich.console import Console

from sentloom.lab.comparison import comparison
from sentloom.lab.comparison_tables import comparison_csv, comparison_markdown, methods_table
from tests.lab.test_comparison import ROWS, STEPS, row


def printed(part, width=120):
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(part)
    return console.export_text(styles=True)


def test_markdown_by_hand():
    assert comparison_markdown(comparison(ROWS, STEPS)).splitlines()[:6] == [
        "| method | A | B | seeds | minutes per seed | steps per seed |",
        "|---|---:|---:|---:|---:|---:|",
        "| tiny, mean, untouched | 70.00 | **70.00** |  |  |  |",
        "| simcse | **80.00 ± 1.00 (+10.00)** | 60.00 ± 0.50 (-10.00) | 3 | 1.5 | 1,200 |",
        "| mlm | ≈ 79.25 ± 0.25 (+9.25) |  | 3 | 0.5 | 400 |",
        "| bsl | 78.50 ± 0.25 (+8.50) | 61.00 ± 0.25 (-9.00) | 3 | 1.5 | 1,000 |",
    ]


def test_no_name_in_the_csv_is_run_as_a_formula():
    table = comparison([row("=run()", {"@set": 60.5}, {"@set": 0.5})], {"=run()": 10.0})
    lines = list(csv.reader(io.StringIO(comparison_csv(table))))[1:]
    assert [line[:3] for line in lines] == [["tiny, mean, untouched", "'@set", "70.0"], ["'=run()", "'@set", "60.5"]]
    assert "-9.5" in lines[1]  # numbers stay


def test_the_signs_are_explained_below_the_table_where_they_stand():
    notes = comparison_markdown(comparison(ROWS, STEPS)).splitlines()[6:]
    assert any(note.startswith("- ≈: not clearly worse") for note in notes)
    assert "≈" not in comparison_markdown(comparison([ROWS[0], ROWS[2]], STEPS))


def test_the_terminal_shows_the_best_in_bold_and_no_other_score():
    text = printed(methods_table("Methods", comparison(ROWS, STEPS)))
    bold = [part.strip() for part in re.findall(r"\x1b\[1m(.*?)\x1b\[0m", text) if re.search(r"\d", part)]
    assert bold == ["70.00", "80.00 ± 1.00 (+10.00)"]
    assert all(other in text for other in ("≈ 79.25", "78.50", "60.00", "61.00"))


def test_no_number_is_cut_where_the_terminal_is_narrow():
    rows = [row("a", dict.fromkeys("ABCDEFG", 80.0), dict.fromkeys("ABCDEFG", 1.0))]
    assert printed(methods_table("Methods", comparison(rows, {"a": 5.0})), width=80).count("80.00 ± 1.00 (+10.00)") == 7


def test_what_is_made_once_has_a_column_where_something_is():
    made = [{"stage": "writer", "method": "synthesizer", "result": "", "seconds": 120.0, "place": "stages/x"}]
    text = comparison_markdown(comparison([*ROWS, row("gense", {"A": 1.0}, {}, made=made)], STEPS))
    assert "| steps per seed | minutes, made once |" in text
    assert text.splitlines()[6].endswith("| 0 | 2.0 |")


def test_files_go_by_their_names_unless_two_have_the_same():
    rows = [row("a", {"/x/faq.tsv": 1.0, "/x/sts.tsv": 1.0, "/y/sts.tsv": 1.0}, {})]
    head = comparison_markdown(comparison(rows, {})).splitlines()[0]
    assert head.startswith("| method | faq.tsv | /x/sts.tsv | /y/sts.tsv |")


def test_a_bar_in_a_name_does_not_break_the_table():
    line = comparison_markdown(comparison([row("a|b", {"A": 80.0}, {})], {})).splitlines()[3]
    assert line.startswith(r"| a\|b |")


def test_csv_has_a_row_a_method_and_set():
    cells = list(csv.DictReader(io.StringIO(comparison_csv(comparison(ROWS, STEPS)))))
    assert [(cell["method"], cell["set"]) for cell in cells[:4]] == [
        ("tiny, mean, untouched", "A"),
        ("tiny, mean, untouched", "B"),
        ("simcse", "A"),
        ("simcse", "B"),
    ]
    simcse = cells[2]
    numbers = [float(simcse[name]) for name in ("score", "deviation", "change", "seconds", "steps")]
    assert numbers == [80.0, 1.0, 10.0, 90.0, 1200.0]
    assert simcse["standing"] == "best"
    assert cells[0]["seconds"] == ""


def test_names_mean_nothing_in_markdown():
    script = "<script>alert(1)</script>\n| **x**"
    lines = comparison_markdown(comparison([row(script, {script: 80.0}, {script: 1.0})], {})).splitlines()
    assert not any("<" in line for line in lines)
    assert r"\*\*x\*\*" in lines[0]
    assert len({line.replace(r"\|", "").count("|") for line in lines[:4]}) == 1
