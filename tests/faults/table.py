"""A pytest plugin that `make faults` loads: adds up the reports of all workers, prints a table and saves it as a page.

A row's name is the constant FAULT of a test's module. Its constants are read from the source, not by import: then a
module that cannot be imported and a worker that died count as failures of their rows.

The bench takes over an hour, so it resumes: the outcome of every test is appended to a file, and the next run of the same
source skips the tests that held, unless their module has changed. A whole run without failures removes the file.
"""

import ast
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sentloom

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


@dataclass(frozen=True)
class Outcome:
    """What became of one test, as it is stored."""

    test: str
    module: str  # the hash of its file
    part: str  # when the run that it was part of started
    minutes: float  # from then to the end of the test
    seconds: float
    tried: int
    failed: int
    known: tuple[str, ...] = ()
    skipped: str = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", type=Path, default=Path("docs/faults.md"), help="the page to write")
    parser.addoption("--faults-state", type=Path, default=Path("out/faults.jsonl"), help="outcomes, to resume from")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        held = config.workerinput["held"]
    else:  # one table, by the process that the workers report to
        table = Table(config.rootpath, config.getoption("--faults-table"), config.getoption("--faults-state"))
        config.pluginmanager.register(table)
        held = table.held
    config.pluginmanager.register(Rest(frozenset(held)))


@dataclass(frozen=True)
class Rest:
    """Leaves out the tests that held in an earlier part of this run."""

    held: frozenset[str]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect them."""
        before = [item for item in items if item.nodeid in self.held]
        config.hook.pytest_deselected(items=before)
        items[:] = [item for item in items if item.nodeid not in self.held]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that has nothing left to do is no failure."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.held:
            session.exitstatus = pytest.ExitCode.OK


class Table:
    """Adds up outcomes, stores them and shows them."""

    def __init__(self, root: Path, path: Path, state: Path) -> None:
        self.root, self.path, self.state = root, path, state
        self.rows = defaultdict[str, Row](Row)
        self.begun = datetime.datetime.now(datetime.UTC)
        self.phases: dict[str, list[pytest.TestReport]] = defaultdict(list)
        self.parts = defaultdict[str, float](float)  # when a part started -> its minutes
        self.held = [outcome.test for outcome in self._stored() if self._add(outcome)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported."""
        if report.failed:
            self._add(self._outcome(report.nodeid, 0.0, tried=1, failed=1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test reports its setup, call and teardown; of one whose worker died there is a single report."""
        phases = self.phases[report.nodeid]
        phases.append(report)
        if report.when not in ("setup", "call"):
            self._store(self._ended(self.phases.pop(report.nodeid)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what it leaves out."""
        node.workerinput["held"] = self.held

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Print the page. It is saved unless the run was interrupted, since then it is not the whole."""
        page = "\n".join(self._page()) + "\n"
        terminalreporter.section("fault bench")
        terminalreporter.write_line(page)
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            terminalreporter.write_line(f"Interrupted: the table above is partial, and {self.path} is left as it was.")
            terminalreporter.write_line("The same command continues.")
            return
        self.path.write_text(page, encoding="utf-8")
        if not any(row.failed for row in self.rows.values()):
            self.state.unlink(missing_ok=True)

    def _stored(self) -> Iterator[Outcome]:
        """What held in earlier parts: of this source, and of tests that are still the same."""
        lines = self.state.read_text("utf-8").splitlines() if self.state.is_file() else []
        if lines[:1] != [_source()]:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            self.state.write_text(f"{_source()}\n", "utf-8")
            return
        last = dict[str, Outcome]()
        for line in lines[1:]:
            try:
                outcome = Outcome(**json.loads(line))
            except ValueError:  # a run was killed while it wrote the line
                continue
            last[outcome.test] = outcome
        for outcome in last.values():
            if not outcome.failed and outcome.module == _hash(self.root / _file(outcome.test)):
                yield outcome

    def _store(self, outcome: Outcome) -> None:
        with self.state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        self._add(outcome)

    def _outcome(self, test: str, seconds: float, **counts: Any) -> Outcome:
        minutes = (datetime.datetime.now(datetime.UTC) - self.begun).total_seconds() / 60
        return Outcome(test, _hash(self.root / _file(test)), self.begun.isoformat(), minutes, seconds, **counts)

    def _ended(self, phases: list[pytest.TestReport]) -> Outcome:
        """What became of a test."""
        test, counts = phases[-1].nodeid, dict(phases[-1].user_properties)
        seconds = sum(phase.duration for phase in phases)
        broken = any(phase.failed for phase in phases)
        expected = [phase.wasxfail for phase in phases if hasattr(phase, "wasxfail")]
        skipped = [phase.longrepr[2] for phase in phases if phase.skipped and not hasattr(phase, "wasxfail")]
        if skipped and not broken:
            why = str(skipped[0]).removeprefix("Skipped: ")
            return self._outcome(test, seconds, tried=0, failed=0, skipped=why)
        tried, failed, known = counts.get("tried", 1), counts.get("failed", 0), list(counts.get("known", []))
        if expected and not broken:  # of a tally, all cases that failed are this known fault
            known += expected[:1] * max(1, failed)
        failures = max(1, failed) if broken else 0
        return self._outcome(test, seconds, tried=max(1, tried), failed=failures, known=tuple(known))

    def _add(self, outcome: Outcome) -> bool:
        """One test into its row."""
        file = _file(outcome.test)
        row = self.rows[_constants(self.root / file).get("FAULT", OTHER)]
        row.files.add(file)
        row.seconds += outcome.seconds
        row.tried += outcome.tried
        row.failed += outcome.failed
        row.broken += [outcome.test.partition("::")[2] or outcome.test] if outcome.failed else []
        row.known += outcome.known
        row.skipped += [outcome.skipped] if outcome.skipped else []
        self.parts[outcome.part] = max(self.parts[outcome.part], outcome.minutes)
        return True

    def _page(self) -> Iterator[str]:
        names = sorted(self.rows, key=_order)
        yield from (INTRODUCTION, self._run(), "")
        yield "| fault | tests | asked | tried | held | failed | known | minutes |"
        yield "|---|---|---:|---:|---:|---:|---:|---:|"
        yield from (self._line(name, self.rows[name]) for name in names)
        yield from self._notes(names)

    def _run(self) -> str:
        parts = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        minutes = f"{sum(self.parts.values()):.0f} minutes with two workers{parts}"
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in VERSIONS)
        return (
            f"Last run: `make faults` on {self.begun:%d %B %Y}, {minutes}, on {_machine()}; "
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
        why = [reason for reason in given if reason]
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


def _file(test: str) -> str:
    """The file of a test, by the test's name."""
    return test.partition("::")[0]


@cache
def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def _source() -> str:
    """A hash of sentloom's source: outcomes of another one do not count."""
    folder = Path(sentloom.__file__).parent
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    lines = (f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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
