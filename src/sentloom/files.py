"""Atomic writes and hashes: the only place that renames. A reader sees the old file or the new one, never a part."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sentloom.errors import InputError

BLOCK = 1 << 20


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    """Flush a file, or a folder's entries: without it a rename may survive a crash that the content did not."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to, beside `target`; it takes the target's place when the block ends well, else it vanishes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(_mode(target))
        put(part, target)
    finally:
        part.unlink(missing_ok=True)


def put(part: Path, target: Path) -> None:
    """Give a finished file its name, durably; one that was there is replaced."""
    _sync(part)
    part.replace(target)
    _sync(target.parent)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; another one that wants it is told. A process that is killed lets go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found = "another run at work in it"
            raise InputError(str(folder), found, "a folder of its own", "wait for it, or choose another") from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            with suppress(OSError):  # nothing came of it: no empty folder is left behind
                folder.rmdir()


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, beside `target`; it takes the target's place when the block ends well, else it vanishes.

    A folder that was there is moved aside first and removed last; if the new one cannot take its place, it goes back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    old = part.with_name(part.name + ".old")
    try:
        yield part
        umask = _umask()
        for path in [*sorted(part.rglob("*")), part]:
            path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)  # safetensors writes for the owner alone
            _sync(path)
        _swap(part, target, old)
        _sync(target.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _swap(part: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.replace(old)
    try:
        part.replace(target)
    except BaseException:
        if old.exists():
            old.replace(target)
        raise


def _mode(target: Path) -> int:
    """The mode that a file at this place has, or would get."""
    return target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
