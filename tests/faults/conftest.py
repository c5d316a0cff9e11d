"""The fault bench counts what it tried: every module names its row, and a run can end with a table.

A module sets `FAULT`, the name of its row. A test counts as one case unless it asks for `tally` and counts its own:

    def test_many(tally):
        for path in damaged:
            with tally.case(path.name):   # a failure is recorded, and the next case still runs
                ...

`make faults` writes the table to docs/faults.md.
"""

import datetime
import os
import platform
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SHOWN_FAILURES = 10
TABLE = "SENTLOOM_FAULTS_TABLE"  # the file that the table is written to; `make faults` sets it


@dataclass
class Tally:
    """The cases of one test: how many were tried, and which failed."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """One fault. What goes wrong is recorded; the test fails at its end."""
        self.tried += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            self.failures.append(f"{name}: {type(error).__name__}: {error}")


@dataclass
class Row:
    """One row of the table."""

    tried: int = 0
    failed: int = 0
    known: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    counted = Tally()
    yield counted
    request.node.user_properties.append(("tried", counted.tried))
    request.node.user_properties.append(("failed", len(counted.failures)))
    if counted.failures:
        shown = "\n".join(counted.failures[:SHOWN_FAILURES])
        pytest.fail(f"{len(counted.failures)} of {counted.tried} failed:\n{shown}", pytrace=False)


@pytest.fixture(autouse=True)
def _row(request: pytest.FixtureRequest) -> None:
    request.node.user_properties.append(("fault", request.module.FAULT))


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get(TABLE)
    if path and not hasattr(config, "workerinput"):  # one table, by the xdist controller
        config.pluginmanager.register(Table(Path(path)))


class Table:
    """Adds up the reports of all workers."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, defaultdict[str, Row](Row)
        self.begun = datetime.datetime.now(datetime.UTC)
        self.outcomes: dict[str, list[pytest.TestReport]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Reports come per phase: the last one, of the teardown, has all properties."""
        phases = self.outcomes[report.nodeid]
        phases.append(report)
        if report.when == "teardown":
            self.add(phases)

    def add(self, phases: list[pytest.TestReport]) -> None:
        """One test into its row."""
        properties = dict(phases[-1].user_properties)
        row = self.rows[properties.get("fault", "not named")]
        if skipped := next((phase for phase in phases if phase.skipped), None):
            expected = getattr(skipped, "wasxfail", None)
            (row.skipped if expected is None else row.known).append(expected or str(skipped.longrepr[2]))
            row.tried += 0 if expected is None else 1
            return
        broken = any(phase.failed for phase in phases)
        row.tried += max(1, properties.get("tried", 1))
        row.failed += max(int(broken), properties.get("failed", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it, and save it."""
        lines = self.lines()
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        terminalreporter.section("fault bench")
        terminalreporter.write_line("\n".join(lines))

    def lines(self) -> list[str]:
        """The page."""
        minutes = (datetime.datetime.now(datetime.UTC) - self.begun).total_seconds() / 60
        return [
            "# The fault bench",
            "",
            f"Written by `make faults` on {self.begun.date()}, {os.cpu_count()} cores, {platform.machine()}, "
            f"Python {platform.python_version()}, in {minutes:.0f} minutes.",
            "",
            "| fault | tried | held | failed | known |",
            "|---|---|---|---|---|",
            *(self._line(name, self.rows[name]) for name in sorted(self.rows, key=_order)),
            "",
            *(f"- Known fault ({name}): {why}" for name, row in self.rows.items() for why in dict.fromkeys(row.known)),
            *(f"- Not run ({name}): {why}" for name, row in self.rows.items() for why in dict.fromkeys(row.skipped)),
        ]

    @staticmethod
    def _line(name: str, row: Row) -> str:
        held = row.tried - row.failed - len(row.known)
        return f"| {name} | {row.tried:,} | {held:,} | {row.failed:,} | {len(row.known):,} |"


def _order(name: str) -> tuple[int, str]:
    """Rows by number first, the others after them."""
    number = name.partition(".")[0]
    return (int(number) if number.isdigit() else 99, name)
