"""Locks have one holder at a time among processes and threads, are released by any death, and leave no stale files."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sentloom.errors import DiskError, InputError
from sentloom.locks import alone_in, alone_on, in_turn
from tests.training.killing import start


def held(work: Path, target: Path) -> int:
    """Start a child that holds a lock until it is killed."""

    def hold() -> None:
        with alone_on(target):
            (work / "held").touch()
            time.sleep(60)

    child = start(hold, work)
    while not (work / "held").exists():
        time.sleep(0.001)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    target = tmp_path / "v.npy"
    child = held(tmp_path, target)
    try:
        with pytest.raises(InputError, match=r"v\.npy: another process is writing to it"), alone_on(target):
            pass
    finally:
        kill(child)
    with alone_on(target):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["held"]


def test_a_link_and_its_target_share_a_lock(tmp_path):
    (tmp_path / "link.npy").symlink_to(tmp_path / "v.npy")
    with alone_on(tmp_path / "v.npy"), pytest.raises(InputError), alone_on(tmp_path / "link.npy"):
        pass


def test_a_process_that_takes_turns_waits_and_logs_it(tmp_path):
    target, logged = tmp_path / "v.npy", []
    child = held(tmp_path, target)
    killer = threading.Timer(0.2, kill, [child])
    killer.start()
    with in_turn(target, logged.append):
        killer.join()  # or the lock would still be held
    assert logged == [f"waiting for another process that is writing {target}"]


def test_two_threads_do_not_share_a_lock(tmp_path):
    refused = []

    def enter():
        try:
            with alone_in(tmp_path / "out"):
                pass
        except InputError as error:
            refused.append(str(error))

    with alone_in(tmp_path / "out"):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_folders_made_for_a_lock_are_removed_if_empty(tmp_path):
    with pytest.raises(KeyError), alone_in(tmp_path / "new" / "out"):
        raise KeyError
    (tmp_path / "empty").mkdir()
    with alone_in(tmp_path / "empty"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("take", [alone_in, in_turn])
def test_no_two_processes_are_inside_at_once(take, tmp_path):
    """Each process increments a number in a file, which loses counts if two overlap; the lock file comes and goes."""
    count, each, workers = tmp_path / "count", 150, 3
    count.write_text("0")

    def add() -> None:
        done = 0
        while done < each:
            try:
                with take(tmp_path / "out"):
                    number = int(count.read_text())
                    os.sched_yield()
                    count.write_text(str(number + 1))
                    done += 1
            except InputError:
                os.sched_yield()

    children = [start(add, tmp_path) for _ in range(workers)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * workers, (tmp_path / "fault.txt").read_text()
    assert int(count.read_text()) == each * workers


def test_a_folder_that_comes_and_goes_is_no_obstacle(tmp_path):
    """mkdir finds the folder, and it is gone when mkdir looks again: that is no file in the way."""
    out = tmp_path / "out"

    def come_and_go() -> None:
        while True:
            with suppress(OSError):
                out.mkdir()
            with suppress(OSError):
                out.rmdir()

    child = start(come_and_go, tmp_path)
    try:
        for _ in range(2000):
            with alone_in(out):
                pass
    finally:
        kill(child)
    assert not (tmp_path / "fault.txt").exists()


@pytest.mark.parametrize("obstacle", ["file", "broken link"])
def test_an_obstacle_in_place_of_a_folder_is_an_error(obstacle, tmp_path):
    out = tmp_path / "out"
    if obstacle == "file":
        out.touch()
    else:
        out.symlink_to(tmp_path / "gone")
    with pytest.raises(DiskError, match="out: File exists"), alone_in(out):
        pass
