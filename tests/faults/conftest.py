"""Counts the faults of the bench. `make faults` runs it and writes docs/faults.md (see table.py).

A module is a row of the table, or a part of one. Long tests of other folders share a row unless they name theirs.

    FAULT = "5. malformed data files"    # the row's name
    ASKED = 10_000                       # how many the goal asks for, if it gives a number
    WHY_FEWER = "the reason"             # if the bench tries fewer, or something else

A test counts as one fault, a test of hypothesis as many as it has examples. A test that counts for itself:

    def test_many(tally):
        for path in damaged:
            with tally.case(path.name):  # a failure is recorded, and the next case still runs
                ...

A fault that is known and not yet fixed is marked `@pytest.mark.xfail(reason="...")`, or `tally.case(name, known="...")`.
Once it is fixed, the test fails until the mark is removed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import sentloom

SHOWN_FAILURES = 10
QUICK = ("test_bad_files", "test_encode_inputs", "test_malicious_artifacts")  # files that make test runs too
Act = Callable[[str, Path, Path], dict[str, Any]]


@dataclass
class Tally:
    """The cases of one test: how many were tried, which failed, and which are known to fail."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    @contextmanager
    def case(self, name: str, known: str | None = None) -> Iterator[None]:
        """One fault. What goes wrong is recorded; the test fails at its end unless the fault is known."""
        self.tried += 1
        try:
            yield
        except (Exception, SystemExit, pytest.fail.Exception) as error:
            if known is None:
                self.failures.append(f"{name}: {type(error).__name__}: {error}")
            else:
                self.known.append(known)
        else:
            if known is not None:
                self.failures.append(f"{name}: a known fault that no longer occurs ({known}): remove it from the test")

    def check(self) -> None:
        """Fail if a case did, or if there was none."""
        shown = "\n".join(self.failures[:SHOWN_FAILURES])
        if self.failures:
            pytest.fail(f"{len(self.failures)} of {self.tried} failed:\n{shown}", pytrace=False)
        assert self.tried, "no case was tried"


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture(scope="session")
def act(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Act]:
    """Run check, check -o or the reading part of fit on a file, in a child with limits on time and memory."""
    folder = tmp_path_factory.mktemp("runner")
    source = Path(sentloom.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parents[2])]),
        "SENTLOOM_SCRATCH": str(folder / "scratch"),
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve far more than they use
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "1000",
    }
    command = [sys.executable, "-m", "tests.faults.hostile_runner", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin
        assert process.stdout

        def run(action: str, path: Path, output: Path) -> dict[str, Any]:
            process.stdin.write(json.dumps([action, str(path), str(output)]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Load a model folder in a child of another process."""
    from tests.faults.model_folders import loader  # here, since the bench's own tests copy this file elsewhere

    with loader(tmp_path_factory.mktemp("cache")) as one:
        yield one


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("fault")
    if item.path.stem not in QUICK:
        item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Runs the test, hands its counts to the table, and fails it for its cases: here, not in a fixture's teardown,
    where xfail would not see it.
    """
    tally = getattr(item, "funcargs", {}).get("tally")
    try:
        yield
    finally:
        if tally:
            counts = {"tried": tally.tried, "failed": len(tally.failures), "known": tally.known}
            item.user_properties.extend(counts.items())
        elif examples := _examples(item):
            item.user_properties.append(("tried", examples))
    if tally:
        tally.check()


def _examples(item: pytest.Item) -> int:
    """How many examples hypothesis ran, as its statistics tell; 0 for a test without it."""
    told = getattr(item, "hypothesis_statistics", "")
    return sum(int(count) for count in re.findall(r"(\d+) (?:passing|failing)\b", told))
