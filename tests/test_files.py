"""Atomic writes: a reader sees the old or the new, and a failure leaves nothing behind."""

import hashlib
import os
from pathlib import Path

import pytest

from sentloom.files import new_file, new_folder, sha256


def test_sha256_of_a_file_larger_than_a_block(tmp_path):
    content = b"0123456789" * 300_000
    (tmp_path / "f").write_bytes(content)
    assert sha256(tmp_path / "f") == hashlib.sha256(content).hexdigest()


def test_a_file_appears_whole(tmp_path):
    target = tmp_path / "deep" / "a.json"
    with new_file(target) as part:
        part.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["a.json"]


def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_file(target) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_replaces_another_whole(tmp_path):
    target = tmp_path / "model"
    for content in ("one", "two"):
        with new_folder(target) as part:
            (part / f"{content}.txt").write_text(content)
            (part / "inner").mkdir()
    assert sorted(path.name for path in target.iterdir()) == ["inner", "two.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_failed_folder_keeps_the_old_one(tmp_path):
    target = tmp_path / "model"
    with new_folder(target) as part:
        (part / "one.txt").write_text("one")
    with pytest.raises(OSError, match="full"), new_folder(target) as part:
        (part / "two.txt").write_text("tw")
        raise OSError("disk full")
    assert [path.name for path in target.iterdir()] == ["one.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_cannot_be_swapped_in_leaves_the_old_one(tmp_path, monkeypatch):
    target, replace = tmp_path / "model", Path.replace
    with new_folder(target) as part:
        (part / "one.txt").write_text("one")

    def fail_second(self, to):
        if to == target and self.name.startswith(".model.") and not self.name.endswith(".old"):
            raise KeyboardInterrupt
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", fail_second)
    with pytest.raises(KeyboardInterrupt), new_folder(target) as part:
        (part / "two.txt").write_text("two")
    assert [path.name for path in target.iterdir()] == ["one.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_private_file_stays_private(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o600)
    with new_file(target) as part:
        part.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_new_folder_can_be_read_by_whom_the_umask_permits(tmp_path):
    with new_folder(tmp_path / "model") as part:
        (part / "1_Pooling").mkdir(mode=0o700)
        for name in ("model.safetensors", "1_Pooling/config.json"):
            (part / name).write_text("x")
            (part / name).chmod(0o600)  # as safetensors leaves it
    umask = os.umask(0)
    os.umask(umask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "model", *(tmp_path / "model").rglob("*")]}
    files, folders = 0o666 & ~umask, 0o777 & ~umask
    assert modes == {"model": folders, "1_Pooling": folders, "model.safetensors": files, "config.json": files}
