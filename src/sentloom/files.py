"""Atomic writes, and proofs that a file is what was written: the only place that renames.

A reader sees the old file or the new one, never a part. What is read back later carries a SHA-256: JSON records inside
(`write_record`), other files and folders in a small file beside them (`seal`).
"""

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sentloom.errors import DamagedFile, disk_errors
from sentloom.locks import in_turn

BLOCK = 1 << 20
CHECKSUM = "checksum"  # the key of a record's own hash
RESULT = "result.json"


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_inside(folder: Path, name: str) -> bool:
    """Whether a name in a folder leads to a file in it, also by links; an OSError or ValueError for an impossible one.

    In the hub's cache, a snapshot's files are links into the folder `blobs` beside `snapshots`; these are inside too.
    """
    root, real = folder.resolve(), (folder / name).resolve()
    cached = any(above.name == "snapshots" and real.parent == above.parent / "blobs" for above in root.parents)
    return real.is_relative_to(root) or cached


def content_sha256(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        return sha256(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    lines = [f"{file.relative_to(path).as_posix()} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def seal(path: Path) -> None:
    """Write down the SHA-256 of a file or a folder, beside it."""
    digest = content_sha256(path)
    with new_file(_seal_of(path)) as part:
        part.write_text(f"{digest}\n", "ascii")


def is_sealed(path: Path) -> bool:
    """Whether a file or a folder is there and holds what it held when it was sealed."""
    try:
        return _seal_of(path).read_text("ascii") == f"{content_sha256(path)}\n"
    except (OSError, UnicodeDecodeError):
        return False


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def write_record(path: Path, values: Mapping[str, Any]) -> None:
    """Write plain values as JSON, with a hash of them."""
    text = json.dumps({**values, CHECKSUM: _digest(values)}, indent=1, ensure_ascii=False)
    with new_file(path) as part:
        part.write_text(text + "\n", "utf-8", "surrogatepass")


def read_record(path: Path, fix: str) -> dict[str, Any]:
    """The values of a record, as JSON has them; a damaged one is refused, and `fix` says what to do."""
    try:
        values = json.loads(path.read_text("utf-8", "surrogatepass"))
        if values.pop(CHECKSUM) == _digest(values):
            return dict(values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise DamagedFile(str(path), "content that is not what was written", "an undamaged file", fix)


def write_result(folder: Path, values: Mapping[str, Any], *outputs: str) -> None:
    """Write result.json, last of all: what is known of the finished work in a folder, with hashes of its outputs."""
    write_record(folder / RESULT, {**values, "outputs": {name: content_sha256(folder / name) for name in outputs}})


def read_result(folder: Path, log: Callable[[str], None]) -> dict[str, Any] | None:
    """What `write_result` wrote; None if the work is not finished, or damaged, of which the user is told."""
    if not (folder / RESULT).is_file():
        return None
    try:
        values = read_record(folder / RESULT, "")
        outputs = values.pop("outputs")
        damaged = [name for name, digest in outputs.items() if content_sha256(folder / name) != digest]
    except (DamagedFile, KeyError, FileNotFoundError):
        damaged = [RESULT]
    if damaged:
        log(f"{folder}: {damaged[0]} is missing or not what was written; it is computed again")
    return None if damaged else values


def _digest(values: Mapping[str, Any]) -> str:
    """Of plain values, whatever their order and layout in a file."""
    as_read = json.loads(json.dumps(values))  # a key that is a number becomes text
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder that is no longer needed; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


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
    with disk_errors(target):
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
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, beside `target`; it takes the target's place when the block ends well, else it vanishes.

    A folder that was there is moved aside first and removed last; if the new one cannot take its place, it goes back.
    Processes that write the same folder take turns; the next one cleans up after one that was killed.
    """
    with in_turn(target), disk_errors(target):
        _clean_up(target)
        part = Path(tempfile.mkdtemp(prefix=_part_prefix(target), dir=target.parent))
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


def _part_prefix(target: Path) -> str:
    return f".{target.name}.part-"


def _clean_up(target: Path) -> None:
    """Undo what a process that was killed left half-done: called by the one process whose turn it is."""
    for path in sorted(target.parent.glob(glob.escape(_part_prefix(target)) + "*")):
        if path.suffix == ".old" and not target.exists():
            path.replace(target)
        else:
            shutil.rmtree(path, ignore_errors=True)


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
