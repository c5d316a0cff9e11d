"""Locks on outputs, so that two processes (or two threads) never build the same one at the same time.

A lock is flock(2) on a small file; the kernel releases it when the process dies for any reason. The file is removed
before the lock is released: a process that has already opened it notices that it is gone and tries again.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sentloom.errors import InputError, disk_errors

LOCK = ".lock"  # in a folder
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
    new = [folder for folder in lock.parents if not folder.exists()]
    with disk_errors(lock.parent):
        handle = _take(lock, busy)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)
        with suppress(OSError):
            for folder in new:
                folder.rmdir()


def _take(lock: Path, busy: Busy) -> int:
    """Return the open lock file once it is locked and still at its path."""
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process has just removed the empty folder
            continue
        except FileExistsError as error:
            if _is_not_a_folder(error.filename):
                raise
            continue  # it was a folder, and another process removed it before mkdir looked at it again
        try:
            _lock(handle, busy)
            if _is_at(handle, lock):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, busy: Busy) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        busy()
        fcntl.flock(handle, fcntl.LOCK_EX)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


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
