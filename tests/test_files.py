"""Atomic writes: a reader sees the old or the new file, and a failure leaves no partial file."""

import errno
import hashlib
import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from safetensors import SafetensorError

from sentloom.errors import DamagedFile, DiskError, InputError
from sentloom.files import (
    cache_folder,
    home_expanded,
    is_sealed,
    new_file,
    new_folder,
    read_record,
    read_result,
    seal,
    sha256,
    write_record,
    write_result,
)


def test_sha256_of_a_file_larger_than_a_block(tmp_path):
    content = b"0123456789" * 300_000
    (tmp_path / "f").write_bytes(content)
    assert sha256(tmp_path / "f") == hashlib.sha256(content).hexdigest()


def test_a_file_appears_complete(tmp_path):
    target = tmp_path / "deep" / "a.json"
    with new_file(target) as part:
        part.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["a.json"]


def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_file(target) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_replaces_another_completely(tmp_path):
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

    monkeypatch.setattr("sentloom.files._exchange", lambda *folders: False)
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


def test_a_new_folder_has_the_permissions_of_the_umask(tmp_path):
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


def changed(content):
    """Yield every copy of a file with one bit flipped, and every truncated copy."""
    for at in range(len(content)):
        yield content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]
        yield content[:at]


VALUES = {"score": 71.25, "name": "Zürich \ud83d", "steps": {2: [1, 2], 10: None}, "nan": float("inf")}


def test_a_changed_record_is_never_read_as_something_else(tmp_path):
    path = tmp_path / "r.json"
    write_record(path, VALUES)
    plain = json.loads(json.dumps(VALUES))
    assert read_record(path, "") == plain
    refused = 0
    for content in changed(path.read_bytes()):
        path.write_bytes(content)
        try:
            assert read_record(path, "") == plain  # another white space character
        except DamagedFile as error:
            refused += str(path) in str(error)
    assert refused > path.stat().st_size


def test_a_seal_covers_names_and_contents(tmp_path):
    folder, file = tmp_path / "model", tmp_path / "v.npy"
    (folder / "inner").mkdir(parents=True)
    for path in (file, folder / "a", folder / "inner/b"):
        path.write_bytes(b"content")
    assert not is_sealed(folder)
    for path in (folder, file):
        seal(path)
        assert is_sealed(path)
    file.write_bytes(b"contend")
    (folder / "a").rename(folder / "c")
    assert not is_sealed(file)
    assert not is_sealed(folder)
    shutil.rmtree(folder)
    assert not is_sealed(folder)


def test_a_result_counts_only_with_undamaged_outputs(tmp_path):
    logged = []
    assert read_result(tmp_path, logged.append) is None
    assert logged == []  # unfinished work is not damage
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"one")
    write_result(tmp_path, {"steps": 3}, "model")
    assert read_result(tmp_path, logged.append) == {"steps": 3}
    (tmp_path / "model/weights").write_bytes(b"two")
    assert read_result(tmp_path, logged.append) is None
    shutil.rmtree(tmp_path / "model")
    assert read_result(tmp_path, logged.append) is None
    (tmp_path / "result.json").write_text('{"steps": 4}')
    assert read_result(tmp_path, logged.append) is None
    assert len(logged) == 3
    assert all(str(tmp_path) in line for line in logged)


FAILURES = {
    "a full disk": OSError(errno.ENOSPC, "No space left on device"),
    "a quota": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "safetensors": SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    "tokenizers": Exception("File too large (os error 27)"),
    "shutil": shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
}


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("new", [new_file, new_folder])
def test_a_failed_write_names_the_target_in_one_sentence(new, error, tmp_path):
    sentence = r"target: [A-Z].*\n[A-Z].* the same command"
    with pytest.raises(DiskError, match=sentence) as caught, new(tmp_path / "target"):
        raise error
    assert "[(" not in str(caught.value)
    assert isinstance(caught.value, OSError)
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_not_converted(tmp_path):
    elsewhere = PermissionError(errno.EACCES, "Permission denied", "/elsewhere/data.txt")
    for error in (elsewhere, KeyError("a"), InputError("a", "b", "c", "d"), SafetensorError("a bad header")):
        with pytest.raises(type(error)) as caught, new_file(tmp_path / "a.txt"):
            raise error
        assert caught.value is error


def test_a_target_below_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for new in (new_file, new_folder):
        with pytest.raises(DiskError, match=r"file"), new(tmp_path / "file" / "a"):
            pass


def test_a_folder_moved_aside_by_a_killed_process_is_restored(tmp_path):
    (tmp_path / ".model.part-abcdefgh.old").mkdir()
    (tmp_path / ".model.part-abcdefgh.old/one.txt").write_text("one")
    (tmp_path / ".model.part-abcdefgh").mkdir()
    (tmp_path / ".models").mkdir()  # of another target
    with pytest.raises(KeyError), new_folder(tmp_path / "model"):
        raise KeyError
    assert (tmp_path / "model/one.txt").read_text() == "one"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".models", "model"]


def test_two_writers_of_one_folder_take_turns(tmp_path):
    target = tmp_path / "model"

    def write(name):
        with new_folder(target) as part:
            for number in range(3):
                (part / f"{name}-{number}").touch()
                time.sleep(0.01)

    threads = [threading.Thread(target=write, args=[name]) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted(path.name for path in target.iterdir())
    assert found in [[f"{name}-{number}" for number in range(3)] for name in "abcd"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_cache_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    for name in ("SENTLOOM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path("/home/someone/.cache/sentloom")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/sentloom")
    monkeypatch.setenv("SENTLOOM_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


def test_the_home_of_nobody_stays_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_expanded("~/faq.csv") == tmp_path / "faq.csv"
    assert home_expanded("~nobody-has-this-name/faq.csv") == Path("~nobody-has-this-name/faq.csv")
