"""Locks on outputs, so that two processes (or two threads) never build the same one at the same time.

A lock is that of the library filelock on a small file; the system releases it when the process dies for any reason.
The file is removed before the lock is released: filelock notices that the one it has opened is gone, and tries again.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sentloom.errors import InputError, disk_errors

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"  # in a folder
PATIENCE = 0.1  # seconds; a lock that is held longer is busy, and not just being released
POLL = 0.01  # seconds between two attempts
Busy = Callable[[], None]  # called if another process holds the lock: raises an error, or returns in order to wait


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; raise an InputError if another process holds it."""
    with locked(folder / LOCK, lambda: _refuse(folder)):
        yield


@contextmanager
def alone_on(target: Path) -> Iterator[None]:
    """Hold the lock of an output file or folder; raise an InputError if another process holds it."""
    with locked(_beside(target), lambda: _refuse(target)):
        yield


@contextmanager
def in_turn(target: Path, log: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Hold the lock of an output file or folder; if another process holds it, log that and wait."""
    with locked(_beside(target), lambda: log(f"waiting for another process that is writing {target}")):
        yield


@contextmanager
def locked(lock: Path, busy: Busy) -> Iterator[None]:
    """Hold a lock file; folders created for it are removed afterwards if they are empty."""
    from filelock import FileLock  # here, since it takes 50 ms to import

    new = [folder for folder in lock.parents if not folder.exists()]
    file = FileLock(lock, poll_interval=POLL, fallback_to_soft=False)  # a soft lock would survive a kill
    with disk_errors(lock.parent):
        _take(file, busy)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows refuses to remove an open file; there, filelock removes it afterwards
            lock.unlink()
        file.release()
        with suppress(OSError):
            for folder in new:
                folder.rmdir()


def _take(file: "BaseFileLock", busy: Busy) -> None:
    """Return once the lock is held."""
    from filelock import Timeout

    patience = PATIENCE
    while True:
        try:
            Path(file.lock_file).parent.mkdir(
                parents=True, exist_ok=True
            )  # filelock would make what a broken link names
            file.acquire(timeout=patience)
            return
        except Timeout:
            busy()
            patience = -1  # forever
        except FileNotFoundError:  # another process has just removed the empty folder
            continue
        except FileExistsError as error:
            if _is_not_a_folder(error.filename):
                raise
            # it was a folder, and another process removed it before mkdir looked at it again


def _is_not_a_folder(path: str) -> bool:
    """Return whether a file or a broken link is at a path now; nothing there is no obstacle."""
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _beside(target: Path) -> Path:
    """Return the lock file of a target, or of what it points to if it is a link."""
    place = target.resolve()
    return place.with_name(f".{place.name}.lock")


def _refuse(target: Path) -> None:
    problem, fix = "another process is writing to it", "wait for it to finish, or choose another name"
    raise InputError(str(target), problem, "", fix)
