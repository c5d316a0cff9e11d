"""Every promise of SECURITY.md names tests, and they exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def promises() -> list[tuple[str, list[str]]]:
    """The rows of its tables: a promise, and the tests that it names."""
    rows = re.findall(r"^\| (.+) \| (.+) \|$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)
    return [(promise, re.findall(r"`([^`]+)`", tests)) for promise, tests in rows if promise != "promise"]


def test_every_promise_has_tests_that_exist():
    assert len(promises()) >= 14
    for promise, tests in promises():
        assert tests, promise
        for test in tests:
            file, _, name = test.partition("::")
            functions = [
                node.name
                for node in ast.parse((ROOT / file).read_text("utf-8")).body
                if isinstance(node, ast.FunctionDef)
            ]
            assert name in functions, f"{promise}: no test {test}"
