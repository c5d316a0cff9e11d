"""Two processes with the same output: it ends as one process leaves it, or the second is refused in one sentence."""

import random
import time
from pathlib import Path

import numpy as np
import pytest

from tests.faults.commands import COMMANDS, EXIT_REFUSED, Command, Ended, begin, build_kitchen, run
from tests.faults.conftest import Tally

FAULT = "two processes on one output"

SLOW = {"fit", "demo"}
REFUSALS = ("another process is writing to it", "it exists and is not an empty folder")


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kitchen(tmp_path_factory.mktemp("kitchen"))


def check(command: Command, ended: Ended, may_be_refused: bool) -> bool:
    """Whether it did the work; if not, it was refused in one sentence."""
    said = ended.said()
    if ended.code in command.codes:
        return True
    assert may_be_refused, f"exit code {ended.code}: {said}"
    assert ended.code == EXIT_REFUSED, f"exit code {ended.code}: {said}"
    assert any(refusal in said for refusal in REFUSALS), said
    return False


def assert_ended_as(command: Command, out: Path, whole: dict[str, str]) -> None:
    assert command.outputs(out) == whole
    assert [path.name for path in out.rglob(".*") if path.suffix in (".lock", ".part")] == []


def together(command: Command, kitchen: Path, out: Path, whole: dict[str, str]) -> None:
    """Both from the start to the end."""
    out.mkdir()
    children = [begin(kitchen, out.with_suffix(f".{number}"), command.at(out)) for number in (1, 2)]
    done = [check(command, child.wait(), not command.shares) for child in children]
    assert any(done)
    assert_ended_as(command, out, whole)


def one_killed(command: Command, kitchen: Path, out: Path, whole: dict[str, str], after: float) -> None:
    """One is killed at some time; whatever the other did by then, the command ends well when it is run once more."""
    out.mkdir()
    first, second = (begin(kitchen, out.with_suffix(f".{number}"), command.at(out)) for number in (1, 2))
    time.sleep(after)
    first.kill()
    if check(command, second.wait(), not command.shares):
        assert command.outputs(out) == whole
    check(command, run(kitchen, out.with_suffix(".3"), command.at(out)), command.outputs(out) == whole)
    assert_ended_as(command, out, whole)


def check_command(name: str, kitchen: Path, folder: Path, kills: int, tally: Tally) -> None:
    command, rng = COMMANDS[name], random.Random(name)
    (folder / "whole").mkdir()
    begun = time.monotonic()
    assert check(command, run(kitchen, folder / "whole.log", command.at(folder / "whole")), False)
    seconds, whole = time.monotonic() - begun, command.outputs(folder / "whole")
    assert whole, "a command that writes nothing proves nothing"
    with tally.case(f"{name}: together"):
        together(command, kitchen, folder / "together", whole)
    for number in range(kills):
        with tally.case(f"{name}: kill {number}"):
            one_killed(command, kitchen, folder / f"kill-{number}", whole, rng.uniform(0, 1.5 * seconds))


@pytest.mark.long
def test_two_that_encode_to_one_file(kitchen, tmp_path, tally):
    check_command("encode", kitchen, tmp_path, 1, tally)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command(name, kitchen, tmp_path, tally):
    check_command(name, kitchen, tmp_path, 1 if name in SLOW else 4, tally)


def test_no_zero_vectors_after_a_kill(kitchen, tmp_path, tally):
    """As it was found: two that encode to one file, and the first is killed while it writes."""
    command = COMMANDS["encode"]
    for number in range(3):
        with tally.case(f"kill {number}"):
            out = tmp_path / str(number)
            out.mkdir()
            first = begin(kitchen, out.with_suffix(".1"), command.at(out))
            while not (out / ".v.npy.vectors.part").exists():
                assert first.poll() is None, "it ended before it could be killed"
                time.sleep(0.001)
            second = begin(kitchen, out.with_suffix(".2"), command.at(out))
            time.sleep(0.01 * number)
            first.kill()
            if not check(command, second.wait(), True):
                assert check(command, run(kitchen, out.with_suffix(".3"), command.at(out)), False)
            assert np.load(out / "v.npy").any(axis=1).all()
