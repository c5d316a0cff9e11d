"""Atomic writes and checksums: how a result gets its name.

A reader sees the old file or the new one, never a part. The same holds for folders where Linux can exchange two names
in one step. Elsewhere a folder has no name between two renames: `at_its_name`, which readers of models call, then waits
for the writer, or moves the folder back if the writer was killed. Files that are read back later have a SHA-256: JSON
records contain it (`write_record`), other files and folders have it in a small file beside them (`seal`).
"""

import glob
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sentloom.errors import DamagedFile, disk_errors
from sentloom.locks import in_turn

BLOCK = 1 << 20
CHECKSUM = "checksum"  # the key of a record's own hash
RESULT = "result.json"
OLD = ".old"  # the ending of a folder that is being replaced
STALE = 3600.0  # seconds after which a half-written file belongs to a run that was killed


def cache_folder() -> Path:
    """Where caches and scratch files go: $SENTLOOM_CACHE, else $XDG_CACHE_HOME/sentloom, else ~/.cache/sentloom."""
    if ours := os.environ.get("SENTLOOM_CACHE"):
        return Path(ours).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sentloom"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_inside(folder: Path, name: str) -> bool:
    """Whether a name in a folder resolves to a file inside it; raises OSError or ValueError for an invalid name.

    In the hub's cache, a snapshot's files are links into the folder `blobs` beside `snapshots`; these count as inside.
    """
    if name and name != ".." and os.sep not in name and not _is_link(folder / name):
        return True
    root, real = folder.resolve(), (folder / name).resolve()
    cached = any(above.name == "snapshots" and real.parent == above.parent / "blobs" for above in root.parents)
    return real.is_relative_to(root) or cached


def without_folders(text: str, names: Iterable[str]) -> str:
    """A text without the folders of this machine that these names are in; names of other kinds change nothing.

    >>> without_folders("fitted to /home/me/data/faq.tsv from owner/name", ["/home/me/data/faq.tsv", "owner/name"])
    'fitted to faq.tsv from owner/name'
    """
    paths = [part for name in names for part in re.split(r"\+|^\w+:", name.rstrip("/")) if _is_local(part)]
    folders = {str(Path.cwd()), *(path.rpartition("/")[0] for path in paths), *(_above(path) for path in paths)}
    for folder in sorted(folders - {"", os.sep}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.~/-]){re.escape(folder)}[/\\]", "", text)
    return text


def home_expanded(path: str | Path) -> Path:
    """The path with the home folder instead of `~` or `~name`; as it is if nobody has that name."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - the method of Path raises an error if nobody has that name


def _is_local(name: str) -> bool:
    return Path(name).is_absolute() or name.startswith((".", "~")) or Path(name).exists()


def _above(path: str) -> str:
    return str(home_expanded(path).resolve().parent)


def _is_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        return sha256(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    lines = [f"{file.relative_to(path).as_posix()} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def seal(path: Path) -> None:
    """Write the SHA-256 of a file or folder to a file beside it."""
    digest = content_sha256(path)
    with new_file(_seal_of(path)) as part:
        part.write_text(f"{digest}\n", "ascii")


def is_sealed(path: Path) -> bool:
    """Whether a file or folder exists and is unchanged since it was sealed."""
    try:
        return _seal_of(path).read_text("ascii") == f"{content_sha256(path)}\n"
    except (OSError, UnicodeDecodeError):
        return False


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def write_record(path: Path, values: Mapping[str, Any]) -> None:
    """Write plain values as JSON, with their hash."""
    text = json.dumps({**values, CHECKSUM: _digest(values)}, indent=1, ensure_ascii=False)
    with new_file(path) as part:
        part.write_text(text + "\n", "utf-8", "surrogatepass")


def read_record(path: Path, fix: str) -> dict[str, Any]:
    """Read the values of a record; if it is damaged, raise a DamagedFile with the advice `fix`."""
    try:
        values = json.loads(path.read_text("utf-8", "surrogatepass"))
        if values.pop(CHECKSUM) == _digest(values):
            return dict(values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise DamagedFile(str(path), "the file is damaged: its content is not what was written", "", fix)


def write_result(folder: Path, values: Mapping[str, Any], *outputs: str) -> None:
    """Write result.json when all else is written: the results of the work in a folder, with hashes of its outputs."""
    write_record(folder / RESULT, {**values, "outputs": {name: content_sha256(folder / name) for name in outputs}})


def read_result(folder: Path, log: Callable[[str], None]) -> dict[str, Any] | None:
    """Read what `write_result` wrote; None if the work is not finished or is damaged, which is logged."""
    if not (folder / RESULT).is_file():
        return None
    try:
        values = read_record(folder / RESULT, "")
        outputs = values.pop("outputs")
        damaged = [name for name, digest in outputs.items() if content_sha256(folder / name) != digest]
    except (DamagedFile, KeyError, FileNotFoundError):
        damaged = [RESULT]
    if damaged:
        log(f"{folder}: {damaged[0]} is missing or damaged; it is computed again")
    return None if damaged else values


def _digest(values: Mapping[str, Any]) -> str:
    """Hash plain values independently of their order and layout in a file."""
    as_read = json.loads(json.dumps(values))  # numeric keys become text
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def remove(path: Path) -> None:
    """Remove a file or folder that is no longer needed; errors are ignored."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries: otherwise a rename may survive a crash that loses the content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield a path to write to, beside `target`; it replaces the target if the block succeeds, else it is removed."""
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
    """Rename a finished file to its target durably, replacing an existing one."""
    _sync(part)
    part.replace(target)
    _sync(target.parent)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill, beside `target`; it replaces the target if the block succeeds, else it is removed.

    An existing folder is exchanged for the new one at once where the system can. Otherwise it is moved aside first and
    removed last; if the new one cannot replace it, it is restored, by `at_its_name` if the process was killed.
    Processes that write the same folder take turns; the next one cleans up after one that was killed.
    """
    with in_turn(target), disk_errors(target):
        _clean_up(target)
        part = Path(tempfile.mkdtemp(prefix=_part_prefix(target), dir=target.parent))
        old = part.with_name(part.name + OLD)
        try:
            yield part
            umask = _umask()
            for path in [*sorted(part.rglob("*")), part]:
                path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)  # safetensors gives access to the owner only
                _sync(path)
            _swap(part, target, old)
            _sync(target.parent)
        finally:
            remove(part)  # after an exchange, this is the old folder
        remove(old)


def at_its_name(folder: Path) -> Path:
    """Return the path of a folder to be read, which is there even if its writer was killed between two renames."""
    if not os.path.lexists(folder) and any(path.suffix == OLD for path in _parts(folder)):
        with in_turn(folder), disk_errors(folder):
            _clean_up(folder)
    return folder


def _part_prefix(target: Path) -> str:
    return f".{target.name}.part-"


def _parts(target: Path) -> list[Path]:
    """What is beside a folder while it is replaced."""
    return sorted(target.parent.glob(glob.escape(_part_prefix(target)) + "*"))


def _clean_up(target: Path) -> None:
    """Clean up after a killed process; called while holding the lock."""
    for path in _parts(target):
        if path.suffix == OLD and not os.path.lexists(target):
            path.replace(target)
        else:
            remove(path)


def _swap(part: Path, target: Path, old: Path) -> None:
    """Give a new folder its name; an old one is then at `part` or at `old`."""
    if _exchange(part, target):
        return
    if target.exists():
        target.replace(old)
    try:
        part.replace(target)
    except BaseException:
        if old.exists():
            old.replace(target)
        raise


def _exchange(part: Path, target: Path) -> bool:
    """Exchange the names of two folders in one step; False if there is only one, or if the system cannot do it."""
    if sys.platform != "linux" or not target.is_dir():
        return False
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None)  # not in every C library
    return rename is not None and rename(here, os.fsencode(part), here, os.fsencode(target), exchange) == 0


def _mode(target: Path) -> int:
    """Return the mode that a file at this path has or would get."""
    return target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
