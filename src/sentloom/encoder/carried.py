"""Model files that packages carry: found by path and checked by SHA-256. The packages themselves are never imported."""

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256


@dataclass(frozen=True)
class Carried:
    """A file inside an installed package."""

    what: str  # "encoder 'embedded'"
    package: str
    path: str  # from the folder that packages are installed in
    sha256: str
    published: str  # what has this hash: "the published all-MiniLM-L6-v2"
    fix: str  # if the package is missing


_hashes: dict[tuple[str, int, int, int], str] = {}  # by path, size, time and inode: a fit asks for its base often


def carried_file(one: Carried) -> Path:
    """The path of the file; a missing package and other content are refused."""
    try:
        path = Path(str(metadata.distribution(one.package).locate_file(one.path)))
    except metadata.PackageNotFoundError:
        problem = f"the package {one.package}, which contains the model, is not installed"
        raise MissingPart(one.what, problem, "", one.fix) from None
    found = _sha256(path) if path.is_file() else "missing"
    if found != one.sha256:
        expected = f"{one.sha256}, as for {one.published}"
        raise ModelError(str(path), f"the SHA-256 is {found}", expected, f"reinstall {one.package}")
    return path


def _sha256(path: Path) -> str:
    facts = path.stat()
    key = (str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if key not in _hashes:
        _hashes[key] = sha256(path)
    return _hashes[key]
