"""Writers of a model folder that are killed at any time while readers read it: the model is always there."""

import random
import time
from functools import partial
from pathlib import Path

import pytest

from tests.attacks.test_swapped_folders import READ, WRITE, fill_kitchen, kill_at
from tests.faults.commands import EXIT_OK, begin, run
from tests.faults.conftest import Tally

FAULT = "killed while a model folder is replaced"

KILLS = 24


@pytest.fixture
def kitchen(tmp_path, one_thread, sentloom, monkeypatch) -> Path:
    fill_kitchen(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert sentloom(*WRITE).returncode == EXIT_OK
    return tmp_path


def test_writers_killed_at_random_times(kitchen, sentloom, tally: Tally):
    rng, start = random.Random(3), time.monotonic()
    assert run(kitchen, kitchen / "log", WRITE).code == EXIT_OK
    seconds = time.monotonic() - start
    for number in range(KILLS):
        exchanges = bool(number % 2)
        with tally.case(f"kill {number}"):
            child = begin(kitchen, kitchen / "log", WRITE, before=partial(kill_at, 0, False, exchanges))
            time.sleep(rng.uniform(0, seconds))
            child.kill()
            done = sentloom(*READ)
            assert done.returncode == EXIT_OK, done.stderr
            (kitchen / "v.npy").unlink()


def test_a_folder_that_is_exchanged_is_never_missing(kitchen, tally: Tally):
    """Looked for all the time while writers replace it."""
    for number in range(4):
        with tally.case(f"writer {number}"):
            child = begin(kitchen, kitchen / "log", WRITE)
            while child.poll() is None:
                assert (kitchen / "m" / "config.json").is_file()
            assert child.wait().code == EXIT_OK
