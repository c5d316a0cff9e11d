"""JSON Lines: one object per line, and what else is found is reported."""

from sentloom.data.findings import Findings
from sentloom.data.json_rows import jsonl_records
from sentloom.data.limits import CLEANING
from tests.data.reading import findings, problems


def test_jsonl_reports_values_that_are_not_objects() -> None:
    recorded = findings()
    text = '{"a": 1}\n[1]\n{"a": }\n\n"s"\n' + "[" * 100_000 + "\n" + "9" * 5000 + '\n{"b": "x"}\n'
    assert [*jsonl_records([(1, text)], recorded)] == [([1, 8], [{"a": 1}, {"b": "x"}])]
    assert [problem.place for problem in recorded.error().problems] == [f"line {n}" for n in (2, 3, 5, 6, 7)]
    assert "'[1]'" in problems(recorded)[0]
    assert "character 7" in problems(recorded)[1]


def test_a_comma_after_an_object_is_repaired_when_cleaning_and_named_as_the_cause_otherwise() -> None:
    block = [(1, '{"a": 1},\n{"a": 2}\n')]
    strict, cleaning = findings(), Findings(CLEANING)
    cleaning.begin("a.jsonl", "line")
    assert [*jsonl_records(block, strict)] == [([2], [{"a": 2}])]
    assert "Likely cause: lines that end in commas" in str(strict.error())
    assert [*jsonl_records(block, cleaning)] == [([1, 2], [{"a": 1}, {"a": 2}])]
    assert [str(kind) for kind in cleaning.irregular()] == ["1 lines with a comma after the object (a.jsonl, line 1)"]


def test_one_object_over_many_lines_is_named_as_the_cause() -> None:
    recorded = findings()
    list(jsonl_records([(1, '{\n"a": 1\n}\n')], recorded))
    assert recorded.total == 3
    assert "one JSON object spread over many lines" in str(recorded.error())
