"""Hostile and messy data files: each is read well or refused in one message, in little time and memory."""

import re
from pathlib import Path

import pytest

from tests.faults import hostile_runner
from tests.faults.conftest import Act
from tests.faults.hostile_files import CASES, Case, Outcome

FAULT = "hostile data files"
ASKED = 38
ROWS = {"check": r"([\d,]+) rows", "clean": r"([\d,]+) kept", "fit": r"([\d,]+) rows"}
QUICK = 20  # every so many cases are run with the other tests


def hold(found: dict, action: str, wanted: Outcome, output: Path) -> None:
    said = found["said"]
    assert "Traceback" not in said, said
    if isinstance(wanted, int):
        assert found["code"] == 0, said
        assert re.search(ROWS[action], said)[1] == f"{wanted:,}", said
    else:
        assert found["code"] == 2, said
        assert re.search(wanted, said), said
        assert said.count("\n") < 30
        assert len(said) < 10_000
        assert not output.exists()


def check_all(case: Case, act: Act, folder: Path) -> None:
    (folder / "data").mkdir()
    path = case.make(folder / "data")
    for action, wanted in (("check", case.check), ("clean", case.clean), ("fit", case.fit)):
        output = folder / f"{action}.jsonl"
        hold(act(action, path, output), action, wanted, output)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is limited by what /proc says")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if number % QUICK == 0 else pytest.mark.long, id=case.name)
        for number, case in enumerate(CASES)
    ],
)
def test_a_hostile_file_is_read_well_or_refused(case: Case, act: Act, tmp_path: Path) -> None:
    check_all(case, act, tmp_path)


def test_the_runner_ends_what_hangs_and_what_takes_too_much(tmp_path: Path) -> None:
    """The bench itself can fail: a child that sleeps and a child that allocates are found out."""
    import time

    assert hostile_runner.run([], tmp_path / "log", lambda: time.sleep(60), seconds=0.2)["code"] is None
    assert hostile_runner.run([], tmp_path / "log", lambda: len(bytearray(2 << 30)), seconds=60)["code"] == 1
