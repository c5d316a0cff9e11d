"""A pytest plugin that `make faults` loads: adds up the reports of all workers, prints a table and saves it as a page.

A row's name is the constant FAULT of a test's module. Its constants are read from the source, not by import: then a
module that cannot be imported and a worker that died count as failures of their rows.
"""

import ast
import datetime
import importlib.metadata
import os
import platform
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

OTHER = "long tests outside the bench"
CONSTANTS = ("FAULT", "ASKED", "WHY_FEWER")
VERSIONS = ("torch", "transformers", "numpy", "pyarrow")
ABSENT = {
    "10. soak": "it takes 24 hours",
}
INTRODUCTION = """\
# The fault bench

`make faults` causes faults on purpose: it kills processes, fills disks, damages files and reads hostile ones, and
checks that sentloom still does what it promises. A row of the table is one kind of fault, and its tests say what must
hold. The numbers of the rows, and how many faults are asked for, come from the project's reliability goals. A known
fault is one that is not fixed yet; it is listed below the table.
"""


@dataclass
class Row:
    """One row of the table."""

    files: set[str] = field(default_factory=set)
    tried: int = 0
    failed: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", type=Path, default=Path("docs/faults.md"), help="the page to write")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # one table, by the process that the workers report to
        config.pluginmanager.register(Table(config.rootpath, config.getoption("--faults-table")))


class Table:
    """Adds up reports and shows them."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root, self.path = root, path
        self.rows = defaultdict[str, Row](Row)
        self.begun = datetime.datetime.now(datetime.UTC)
        self.phases: dict[str, list[pytest.TestReport]] = defaultdict(list)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported."""
        if report.failed:
            row = self._row(report.nodeid)
            row.tried, row.failed = row.tried + 1, row.failed + 1
            row.broken.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test reports its setup, call and teardown; of one whose worker died there is a single report."""
        phases = self.phases[report.nodeid]
        phases.append(report)
        if report.when not in ("setup", "call"):
            self._add(self._row(report.nodeid), self.phases.pop(report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Print the page. It is saved unless the run was interrupted, since then it is not the whole."""
        page = "\n".join(self._page()) + "\n"
        terminalreporter.section("fault bench")
        terminalreporter.write_line(page)
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            terminalreporter.write_line(f"Interrupted: the table above is partial, and {self.path} is left as it was.")
        else:
            self.path.write_text(page, encoding="utf-8")

    def _row(self, test: str) -> Row:
        file = test.partition("::")[0]
        row = self.rows[_constants(self.root / file).get("FAULT", OTHER)]
        row.files.add(file)
        return row

    def _add(self, row: Row, phases: list[pytest.TestReport]) -> None:
        """One test into its row."""
        counts = dict(phases[-1].user_properties)
        row.seconds += sum(phase.duration for phase in phases)
        broken = any(phase.failed for phase in phases)
        expected = [phase.wasxfail for phase in phases if hasattr(phase, "wasxfail")]
        skipped = [phase.longrepr[2] for phase in phases if phase.skipped and not hasattr(phase, "wasxfail")]
        if skipped and not broken:
            row.skipped.append(str(skipped[0]).removeprefix("Skipped: "))
            return
        tried, failed = counts.get("tried", 1), counts.get("failed", 0)
        row.tried += max(1, tried)
        row.failed += max(1, failed) if broken else 0
        row.broken += [phases[-1].nodeid.partition("::")[2]] if broken else []
        row.known += counts.get("known", [])
        if expected and not broken:  # of a tally, all cases that failed are this known fault
            row.known += expected[:1] * max(1, failed)

    def _page(self) -> Iterator[str]:
        names = sorted(self.rows, key=_order)
        yield from (INTRODUCTION, self._run(), "")
        yield "| fault | tests | asked | tried | held | failed | known | minutes |"
        yield "|---|---|---:|---:|---:|---:|---:|---:|"
        yield from (self._line(name, self.rows[name]) for name in names)
        yield from self._notes(names)

    def _run(self) -> str:
        minutes = (datetime.datetime.now(datetime.UTC) - self.begun).total_seconds() / 60
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in VERSIONS)
        return (
            f"Last run: `make faults` on {self.begun:%d %B %Y}, {minutes:.0f} minutes with two workers, on {_machine()}; "
            f"Python {platform.python_version()}, {versions}. The minutes of a row are those of both workers together."
        )

    def _line(self, name: str, row: Row) -> str:
        asked, held = self._asked(row), row.tried - row.failed - len(row.known)
        links = [f"[{Path(file).stem.removeprefix('test_')}](../{file})" for file in sorted(row.files) if name != OTHER]
        counts = [f"{count:,}" for count in (row.tried, held, row.failed, len(row.known))]
        cells = [name, ", ".join(links), f"{asked:,}" if asked else "", *counts, f"{row.seconds / 60:.1f}"]
        return f"| {' | '.join(cells)} |"

    def _asked(self, row: Row) -> int:
        return sum(_constants(self.root / file).get("ASKED", 0) for file in row.files)

    def _why_fewer(self, row: Row) -> list[str]:
        given = [_constants(self.root / file).get("WHY_FEWER") for file in sorted(row.files)]
        why = [one for one in given if one]
        return why or ["fewer, and no reason is given"] * (row.tried < self._asked(row))

    def _notes(self, names: list[str]) -> Iterator[str]:
        rows = {name: self.rows[name] for name in names}
        yield from _section("Fewer or other than asked for", {name: self._why_fewer(row) for name, row in rows.items()})
        yield from _section("Failed", {name: row.broken for name, row in rows.items()})
        yield from _section("Known faults", {name: row.known for name, row in rows.items()}, none="None.")
        yield from _section("Skipped", {name: row.skipped for name, row in rows.items()})
        yield from _section("Not in this bench", {name: [why] for name, why in ABSENT.items()})


def _section(title: str, lines: dict[str, list[str]], none: str = "") -> Iterator[str]:
    """Lines by row, equal ones counted; nothing if there are none."""
    shown = [
        f"- {name}: {line}" + (f" ({lines[name].count(line)} times)" if lines[name].count(line) > 1 else "")
        for name in lines
        for line in dict.fromkeys(lines[name])
    ]
    if shown or none:
        yield from ("", f"## {title}", "", *(shown or [none]))


@cache
def _constants(path: Path) -> dict[str, Any]:
    """The constants of a test module that the table needs; none of a file that is not there or not Python."""
    try:
        body = ast.parse(path.read_text("utf-8")).body
    except (OSError, SyntaxError):
        return {}
    found = [(line.targets[0], line.value) for line in body if isinstance(line, ast.Assign)]
    return {
        name.id: ast.literal_eval(value) for name, value in found if isinstance(name, ast.Name) and name.id in CONSTANTS
    }


def _machine() -> str:
    """As in "2 cores of AMD EPYC (x86_64, Linux)"."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or "an unnamed processor"
    return f"{os.cpu_count()} cores of {model} ({platform.machine()}, {platform.system()})"


def _order(name: str) -> tuple[bool, int, str]:
    """Rows with a number first, then the others, then what is outside the bench."""
    number = name.partition(".")[0]
    return (name == OTHER, int(number) if number.isdigit() else 99, name)
