"""kill -9 of a run: forked from this warm process, killed at a random time, and again until it is done."""

import os
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file

from tests.training.small_runs import journal, run, similarity, state

STEPS = {"batch": 4, "log_every": 2, "checkpoint_seconds": 0.0, "chunk": 3}


def finish(case: str, model: Path, folder: Path, steps: int) -> None:
    """One call of the command: train to the end, or from where the last call was killed."""
    method, _ = run(case, model, folder, similarity, steps=steps, **STEPS)
    save_file({name: tensor.contiguous() for name, tensor in state(method).items()}, folder / "end.part")
    (folder / "end.part").rename(folder / "end.safetensors")


def start(work: Callable[[], None], folder: Path) -> int:
    """A child that does the work; its traceback, if any, is left in the folder."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        (folder / "fault.txt").write_text(traceback.format_exc())
    finally:
        os._exit(1)


def ended(child: int) -> bool:
    return os.waitpid(child, os.WNOHANG)[0] != 0


def kill_until_done(case: str, model: Path, folder: Path, steps: int, kills: int, seconds: float) -> int:
    """Start a run and kill it, so many times, over most of the `seconds` it takes; then let it end.

    Returns how many of the kills hit a save: every other one waits for that.
    """
    rng, hit, saves = random.Random(steps), 0, 0
    folder.mkdir(parents=True)
    while hit < kills:
        child = start(lambda: finish(case, model, folder, steps), folder)
        until = time.monotonic() + rng.uniform(0, 1.2 * seconds / kills)
        while not ended(child):
            halfway = any((folder / "checkpoints").glob(".step-*"))
            if time.monotonic() > until and (halfway or hit % 2 == 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                hit, saves = hit + 1, saves + halfway
                break
            time.sleep(0.0005)
        else:  # it was too quick for all the kills
            assert_ended(folder)
            shutil.rmtree(folder)
            return kill_until_done(case, model, folder, steps, kills, seconds / 2)
    os.waitpid(start(lambda: finish(case, model, folder, steps), folder), 0)
    assert_ended(folder)
    return saves


def assert_ended(folder: Path) -> None:
    fault = folder / "fault.txt"
    assert (folder / "end.safetensors").exists(), fault.read_text() if fault.exists() else "it ended without a word"


def assert_as_if_never_killed(whole: Path, killed: Path) -> None:
    one, other = (load_file(folder / "end.safetensors") for folder in (whole, killed))
    assert one.keys() == other.keys()
    assert [name for name in one if not one[name].equal(other[name])] == []
    assert journal(whole) == journal(killed)
    assert not list((killed / "checkpoints").glob(".*"))
