"""Where the files of the catalogue are on this machine, and whether they are the published ones.

CACHE/models/NAME-HASH/     what `sentloom models get NAME` put there; HASH begins the SHA-256 of its main file

The other models are in packages of the extra `embedded`, which are found by path and never imported.
"""

from importlib import metadata
from pathlib import Path

from sentloom.encoder.catalogue.entries import Entry, Installed
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.errors import MissingPart, ModelError
from sentloom.files import cache_folder, sha256


def models_folder() -> Path:
    """The folder that all downloaded models are in."""
    return cache_folder() / "models"


def downloaded_folder(entry: Entry) -> Path:
    """Where a downloaded model is, or would be."""
    return models_folder() / f"{entry.name}-{entry.sha256[:16]}"


def is_here(entry: Entry) -> bool:
    """Whether a model is on this machine; its files are checked when it is loaded."""
    try:
        return _place(entry).is_dir()
    except MissingPart:
        return False


def checked_folder(entry: Entry) -> Path:
    """The folder of a model, whose files are the published ones."""
    folder = _place(entry)
    if not folder.is_dir():
        size = f"{entry.name} ({entry.licence}, {entry.download_size} to download)"
        raise MissingPart(entry.what, "it is not on this machine", size, entry.get)
    for name, digest in entry.files.items():
        check_sha256(folder / name, digest, f"{name} of {entry.upstream}", _again(entry, folder))
    refuse_other_files(folder, entry)
    return folder


def entry_in(folder: Path) -> Entry | None:
    """The model of the catalogue that is in a folder."""
    return next((entry for entry in CATALOGUE.values() if is_here(entry) and _place(entry) == folder), None)


def check_sha256(path: Path, digest: str, published: str, fix: str) -> None:
    """Refuse a file with other content, or none."""
    actual = _sha256(path) if path.is_file() else "missing"
    if actual != digest:
        raise ModelError(str(path), f"the SHA-256 is {actual}", f"{digest}, as for {published}", fix)


def refuse_other_files(folder: Path, entry: Entry) -> None:
    """Refuse files that were not published, because loaders look for many names."""
    unread = entry.origin.unread if isinstance(entry.origin, Installed) else frozenset()
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and path.relative_to(folder).as_posix() not in entry.files.keys() | unread:
            problem = f"{entry.name} was published without this file"
            raise ModelError(str(path), problem, "", _again(entry, folder))


def _again(entry: Entry, folder: Path) -> str:
    if isinstance(entry.origin, Installed):
        return f"reinstall {entry.origin.package}"
    return f"remove {folder} and run `{entry.get}` again"


def _place(entry: Entry) -> Path:
    """Where the folder is, or would be; refuses a missing package, and one of another version."""
    if not isinstance(entry.origin, Installed):
        return downloaded_folder(entry)
    package = entry.origin.package
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        problem = f"the package {package}, which contains the model, is not installed"
        raise MissingPart(entry.what, problem, "", entry.get) from None
    if distribution.version != entry.origin.version:
        problem = f"{package} {distribution.version} is installed"
        raise MissingPart(entry.what, problem, f"{package} {entry.origin.version}", entry.get)
    return Path(str(distribution.locate_file(entry.origin.path)))


_hashes: dict[tuple[str, int, int, int], str] = {}  # by path, size, time and inode: a fit asks for its base often


def _sha256(path: Path) -> str:
    facts = path.stat()
    key = (str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if key not in _hashes:
        _hashes[key] = sha256(path)
    return _hashes[key]
