"""kill -9: work is forked from this warm process, killed at a random instant, started again, and so on until it is done."""

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file

from tests.training.small_runs import journal, run, similarity, state

STEPS = {"batch": 4, "log_every": 2, "checkpoint_seconds": 0.0, "chunk": 3}
POLL = 0.0005  # seconds

Work = Callable[[Path], None]
Halves = Callable[[Path], set[Path]]  # the half-written files and folders of a run


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


def complete(work: Callable[[], None], folder: Path) -> float:
    """Do the work in a child; how long it took."""
    begun = time.monotonic()
    status = os.waitpid(start(work, folder), 0)[1]
    assert status == 0, (folder / "fault.txt").read_text()
    return time.monotonic() - begun


def kill(work: Work, run: Path, seconds: float, halves: Halves, inside: bool) -> bool | None:
    """Kill the work after so many seconds, or, if it shall be inside a write, at the first one from then on.

    Returns whether the kill left something half-written; None if the work ended first.
    """
    old = halves(run)
    child, until = start(lambda: work(run), run), time.monotonic() + seconds
    while not ended(child):
        if time.monotonic() >= until and (not inside or halves(run) - old):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return bool(halves(run) - old)
        time.sleep(POLL)
    assert not (run / "fault.txt").exists(), (run / "fault.txt").read_text()
    return None


def kill_until_done(
    work: Work, folder: Path, seconds: float, halves: Halves, kills: int, inside: int = 0
) -> list[Path]:
    """Kill the work so many times at random instants, `inside` of them inside a write; then let it end.

    `seconds` is how long it takes when nobody kills it. Returns the folders of finished runs: one, or more if a run was
    quicker than its kills. Nothing is cleaned up between kills.
    """
    rng, done, hits = random.Random(folder.name), 0, 0
    runs = [folder / "0"]
    runs[0].mkdir(parents=True)
    while done < kills or hits < inside:
        forced = hits < inside and (done >= kills - inside or rng.random() < inside / kills)
        hit = kill(work, runs[-1], rng.uniform(0, 3 * seconds / max(kills, 3)), halves, forced)
        if hit is None:
            runs.append(folder / f"{len(runs)}")
            runs[-1].mkdir()
        else:
            done, hits = done + 1, hits + (hit and forced)
    complete(lambda: work(runs[-1]), runs[-1])
    return runs


def finish(case: str, model: Path, folder: Path, steps: int) -> None:
    """One call of the command: train to the end, or from where the last call was killed."""
    method, _ = run(case, model, folder, similarity, steps=steps, **STEPS)
    save_end(method, folder)


def save_end(method, folder: Path) -> None:
    """Keep all tensors of a method for a comparison."""
    save_file({name: tensor.contiguous() for name, tensor in state(method).items()}, folder / "end.part")
    (folder / "end.part").rename(folder / "end.safetensors")


def half_checkpoints(folder: Path) -> set[Path]:
    """What a kill inside a save leaves behind."""
    return hidden(folder / "checkpoints")


def hidden(folder: Path) -> set[Path]:
    """What is being written in a folder, or was when its process was killed: all hidden names but those of locks."""
    return {path for path in folder.glob(".*") if not path.name.endswith(".lock")}


def assert_as_if_never_killed(whole: Path, killed: Path) -> None:
    """Bit for bit: all tensors of the method, the journal, and the last checkpoints with the optimizer's state."""
    one, other = (load_file(folder / "end.safetensors") for folder in (whole, killed))
    assert one.keys() == other.keys()
    assert [name for name in one if not one[name].equal(other[name])] == []
    assert journal(whole) == journal(killed)
    assert checkpoints(whole) == checkpoints(killed)


def checkpoints(folder: Path) -> dict[str, object]:
    """The files of the checkpoints; of the facts all but the time that the run took, and the hash over it."""
    contents: dict[str, object] = {}
    for path in folder.glob("checkpoints/[!.]*/*"):
        contents[f"{path.parent.name}/{path.name}"] = path.read_bytes()
        if path.suffix == ".json":
            facts = json.loads(path.read_text("utf-8"))
            del facts["seconds"], facts["sha256"]["checkpoint.json"]
            contents[f"{path.parent.name}/{path.name}"] = facts
    assert {path.rpartition("/")[2] for path in contents} == {
        "state.safetensors",
        "optimizer.safetensors",
        "checkpoint.json",
    }
    return contents
