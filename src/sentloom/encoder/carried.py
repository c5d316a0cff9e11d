"""Model files that packages carry: found by path and checked by SHA-256. The packages themselves are never imported."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256


@dataclass(frozen=True)
class Carried:
    """A file inside an installed package, or a folder, whose files have their own hashes."""

    what: str  # "encoder 'embedded'"
    package: str
    path: str  # from the folder that packages are installed in
    sha256: str  # "" for a folder
    published: str  # what has this hash: "the published all-MiniLM-L6-v2"
    fix: str  # if the package is missing


_hashes: dict[tuple[str, int, int, int], str] = {}  # by path, size, time and inode: a fit asks for its base often


def carried_folder(one: Carried, files: Mapping[str, str], unread: frozenset[str] = frozenset()) -> Path:
    """The path of a folder, with the SHA-256 of each of its files by name.

    Files that are never read may have any content. Others are refused: loaders look for many names.
    """
    folder = _located(one)
    for name, digest in files.items():
        carried_file(replace(one, path=f"{one.path}/{name}", sha256=digest))
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and path.relative_to(folder).as_posix() not in files.keys() | unread:
            problem = f"the package {one.package} was published without this file"
            raise ModelError(str(path), problem, "", f"remove it, or reinstall {one.package}")
    return folder


def carried_file(one: Carried) -> Path:
    """The path of the file; a missing package and other content are refused."""
    path = _located(one)
    found = _sha256(path) if path.is_file() else "missing"
    if found != one.sha256:
        expected = f"{one.sha256}, as for {one.published}"
        raise ModelError(str(path), f"the SHA-256 is {found}", expected, f"reinstall {one.package}")
    return path


def _located(one: Carried) -> Path:
    try:
        return Path(str(metadata.distribution(one.package).locate_file(one.path)))
    except metadata.PackageNotFoundError:
        problem = f"the package {one.package}, which contains the model, is not installed"
        raise MissingPart(one.what, problem, "", one.fix) from None


def _sha256(path: Path) -> str:
    facts = path.stat()
    key = (str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if key not in _hashes:
        _hashes[key] = sha256(path)
    return _hashes[key]
