"""Parse JSON Lines: one object per line."""

import json
from collections.abc import Iterable, Iterator

from sentloom.data.findings import Findings
from sentloom.data.scan import Block, Records, text_lines

EXPECTED = "one JSON object"
COMMAS = "lines that end in commas; each line should hold one object and nothing else"
PRETTY = "one JSON object spread over many lines: write one object per line, or an array of objects"


def jsonl_records(blocks: Iterable[Block], findings: Findings) -> Iterator[Records]:
    """Yield the JSON objects with their line numbers."""
    for numbers, lines in text_lines(blocks, findings):
        try:
            rows = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            rows = [None]
        if not all(isinstance(row, dict) for row in rows):
            rows = [_json_object(number, line, findings) for number, line in zip(numbers, lines, strict=True)]
            numbers = [number for number, row in zip(numbers, rows, strict=True) if row is not None]
        yield numbers, [row for row in rows if row is not None]


def _json_object(number: int, line: str, findings: Findings) -> dict[str, object] | None:
    if findings.allowance.repair and (repaired := _without_comma(line)) is not None:
        findings.repaired(number, "lines with a comma after the object")
        line = repaired
    try:
        value = json.loads(line)
        problem = f"found the JSON value {str(value)[:40]!r}"
    except json.JSONDecodeError as error:
        problem = f"the line is not JSON ({error.msg}, character {error.pos + 1})"
        findings.problem(number, problem, EXPECTED, "lines that are not JSON", _cause(line))
        return None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or very deeply nested brackets
        findings.problem(number, f"the JSON cannot be read ({error})", EXPECTED, "lines of JSON that cannot be read")
        return None
    if isinstance(value, dict):
        return value
    findings.problem(number, problem, EXPECTED, "lines with JSON that is not an object", _cause(line))
    return None


def _without_comma(line: str) -> str | None:
    """Return the object of a line that ends in a comma; None for any other line."""
    whole = line.strip()
    return whole.removesuffix(",") if whole.startswith("{") and whole.endswith(",") else None


def _cause(line: str) -> str:
    if line.strip() == "{":
        return PRETTY
    return "" if _without_comma(line) is None else COMMAS
