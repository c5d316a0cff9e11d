"""results.md: the names in it come from recipes and data files, and mean nothing there."""

from sentloom.lab.results import Row, markdown

SCRIPT = "<script>alert(1)</script>"
NAME = f"{SCRIPT}|a\n| **b**"


def row(name: str, made: list[dict] | None = None) -> Row:
    scores = {name: 80.0}
    return Row(name, 1, name, scores, name, scores, scores, {name: None}, {name: 79.5}, 60.0, True, False, made or [])


def test_names_mean_nothing_in_markdown():
    made = [{"stage": NAME, "method": "synthesizer", "result": NAME, "seconds": 60.0, "place": NAME}]
    text = markdown([row(NAME, made)])
    assert "<" not in text
    assert "**b" not in text
    lines = [line.replace(r"\|", "") for line in text.splitlines() if line]
    assert [line.count("|") for line in lines] == [6] * 3 + [6] * 4


def test_the_table_by_hand():
    assert markdown([row("a")]).splitlines() == [
        "|  | a | published | seeds | minutes |",
        "|---|---:|---:|---:|---:|",
        "| a, untouched | 80.00 |  |  |  |",
        "| a | 80.00 (+0.00) | a 79.50 | 1 | 1.0 |",
    ]
