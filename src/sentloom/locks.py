"""Locks on outputs, so that two processes (or two threads) never build the same one at the same time.

A lock is flock(2) on a small file, which the kernel releases when its process dies, however it dies. The file is
removed before the lock is released: a process that had opened it by then notices that it is gone, and tries again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sentloom.errors import InputError, disk_errors

Busy = Callable[[], None]  # called when another process holds the lock: it raises, or returns in order to wait


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder that no other process works in; refused while one does."""
    with locked(folder / ".lock", lambda: _refuse(folder)):
        yield


@contextmanager
def alone_on(target: Path) -> Iterator[None]:
    """Build a file or a folder that no other process builds; refused while one does."""
    with locked(_beside(target), lambda: _refuse(target)):
        yield


@contextmanager
def in_turn(target: Path, log: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Build a file or a folder; while another process does, say so and wait for it."""
    with locked(_beside(target), lambda: log(f"waiting for another process that is writing {target}")):
        yield


@contextmanager
def locked(lock: Path, busy: Busy) -> Iterator[None]:
    """Hold a lock file; folders that had to be made for it are removed again if they stay empty."""
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
    """The open lock file, once it is locked and still the one that the next process will find."""
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process has just removed the empty folder
            continue
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


def _beside(target: Path) -> Path:
    """The lock file of a target; of a link, that of what it points to."""
    place = target.resolve()
    return place.with_name(f".{place.name}.lock")


def _refuse(target: Path) -> None:
    found, fix = "another process writing to it", "wait for it, or choose another name"
    raise InputError(str(target), found, "one process at a time", fix)
