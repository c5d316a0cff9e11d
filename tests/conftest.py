"""Profiles of the property tests, quick by default and long for `make faults`; and the command in this process."""

import subprocess
import sys
from itertools import count

import pytest
import torch
from hypothesis import settings

from sentloom.cli import main
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.places import downloaded_folder
from tests.encoder.small_models import FAMILIES

settings.register_profile("quick", deadline=None, max_examples=15)  # the machine may be busy: no test is timed
settings.register_profile("long", deadline=None, max_examples=2500)
settings.load_profile("quick")


NUMBERS = count()
DOWNLOADED = {name: downloaded_folder(entry) for name, entry in CATALOGUE.items()}  # before tests have their own cache
RARE = set(FAMILIES) - {"bert", "t5"}


def pytest_itemcollected(item):
    """An encoder and an encoder with a decoder are enough for `make test`; `make faults` runs all families."""
    if hasattr(item, "callspec") and RARE.intersection(map(str, item.callspec.params.values())):
        item.add_marker("long")


@pytest.fixture(autouse=True)
def scratch(request, monkeypatch, tmp_path_factory):
    """A cache and scratch files of its own: most tests write neither, so that their folders are only named here."""
    here = tmp_path_factory.getbasetemp() / f"own-{next(NUMBERS)}"
    monkeypatch.setenv("SENTLOOM_CACHE", str(here / "cache"))
    folder = (request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else here) / "scratch"
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(folder))
    return folder


@pytest.fixture
def downloaded(scratch):
    """A function that lends a model of the catalogue to the cache of a test, or skips it; scratch sets that cache."""

    def lend(*names):
        for name in names:
            if not DOWNLOADED[name].is_dir():
                pytest.skip(f"needs the model: sentloom models get {name}")
            place = downloaded_folder(CATALOGUE[name])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(DOWNLOADED[name])
        return names[0]

    return lend


@pytest.fixture(autouse=True)
def _seeded():
    """New layers and dropout masks do not depend on which tests ran before."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed also formats the stack, for every kind of device


@pytest.fixture(scope="module")
def one_thread():
    """One thread: small models gain nothing from more, and a forked process cannot use those of its parent."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def sentloom(monkeypatch, capsys):
    """The command's entry point in this process, since importing torch again takes seconds."""
    monkeypatch.setenv("COLUMNS", "500")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["sentloom", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, output.out, output.err)

    return run
