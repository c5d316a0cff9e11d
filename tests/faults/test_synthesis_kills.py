"""kill -9 of a synthesis, anywhere: the end has exactly the rows of a run that was never killed."""

import os
import random
import resource
import signal
import time

import pytest
import torch

from sentloom.errors import InputError
from sentloom.synthesis.filters import Filtering
from sentloom.synthesis.sampling import Sampling
from sentloom.synthesis.synthesize import synthesize
from tests.synthesis.ledgers import derived, raw_texts, rows_of
from tests.synthesis.small_synthesizers import build_small_t5
from tests.training.killing import ended, start

FAULT = "3. kill -9 in synthesis"

SAMPLING, LOOSE = Sampling(max_tokens=6), Filtering(threshold=0)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("models") / "t5")


def finish(raw, model, folder):
    synthesize(raw, model, folder, SAMPLING, LOOSE, block=2, show_progress=False)


def timed(raw, model, folder):
    begun = time.monotonic()
    finish(raw, model, folder)
    return time.monotonic() - begun


def wait(child, faults):
    _, status = os.waitpid(child, 0)
    assert status == 0, (faults / "fault.txt").read_text()


def kill_until_done(raw, model, folder, faults, kills, seconds):
    """Kill so many runs at random times, every other one in the middle of a write; then let one end."""
    rng, hit, halves = random.Random(kills), 0, 0
    while hit < kills:
        child = start(lambda: finish(raw, model, folder), faults)
        until = time.monotonic() + rng.uniform(0, 0.3 + 1.2 * seconds / kills)
        while not ended(child):
            half = any(folder.glob(".*")) or any(folder.glob("blocks/.*"))
            if time.monotonic() > until and (half or hit % 2 == 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                hit, halves = hit + 1, halves + half
                break
            time.sleep(0.0003)
        else:
            hit += 1  # too quick for this kill: the next run finds all done, and dies while it filters
        for left in [*folder.glob(".*"), *folder.glob("blocks/.*")]:
            left.unlink()  # so that the next half-written file is a new one
    wait(start(lambda: finish(raw, model, folder), faults), faults)
    return halves


def assert_same(folder, whole):
    assert rows_of(folder) == rows_of(whole)
    assert derived(folder) == derived(whole)


def test_two_kills(model, tmp_path):
    raw = raw_texts(30)
    seconds = timed(raw, model, tmp_path / "whole")
    kill_until_done(raw, model, tmp_path / "killed", tmp_path, 2, seconds)
    assert_same(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.long
def test_thirty_kills(model, tmp_path):
    raw = raw_texts(120)
    seconds = timed(raw, model, tmp_path / "whole")
    halves = kill_until_done(raw, model, tmp_path / "killed", tmp_path, 30, seconds)
    assert halves >= 10
    assert_same(tmp_path / "killed", tmp_path / "whole")


def test_two_runs_on_one_ledger_at_a_time(model, tmp_path):
    raw = raw_texts(30)
    finish(raw, model, tmp_path / "whole")
    children = [start(lambda: finish(raw, model, tmp_path / "shared"), tmp_path) for _ in range(2)]
    for child in children:
        wait(child, tmp_path)
    assert_same(tmp_path / "shared", tmp_path / "whole")


def test_a_full_disk_is_told_and_the_run_goes_on(model, tmp_path):
    raw = raw_texts(8)
    finish(raw, model, tmp_path / "whole")

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # room for the plan, not for a block
        with pytest.raises(InputError, match=r"(?s)ledger .*full: found File too large.*the same command goes on"):
            finish(raw, model, tmp_path / "full")

    wait(start(full, tmp_path), tmp_path)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["plan.json", "blocks"]
    assert not list((tmp_path / "full/blocks").iterdir())
    finish(raw, model, tmp_path / "full")
    assert_same(tmp_path / "full", tmp_path / "whole")
