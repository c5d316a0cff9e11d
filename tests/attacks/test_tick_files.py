"""Files of ticks: what is not ours is not touched, and nothing that was confirmed is lost or read as something else."""

import io
import json
import os
import random
import resource
import shutil
import threading

import httpx2
import pytest

from tests.ticking.small_fit import build_fit_folder

CONFIRMED = 12
FLIPS = 50


class Typed(io.StringIO):
    """Keys that somebody types, a line each; between them, other programs run: functions without arguments."""

    def __init__(self, keys):
        super().__init__()
        self.keys = list(keys)

    def readline(self, size=-1):
        while self.keys and callable(self.keys[0]):
            self.keys.pop(0)()
        return f"{self.keys.pop(0)}\n" if self.keys else ""


def no_file_larger_than(size):
    """A machine whose disk is full: a write is cut off where a file has this size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture(scope="module")
def fit_folder(tmp_path_factory, one_thread):
    return build_fit_folder(tmp_path_factory.mktemp("fit"))


@pytest.fixture
def tick(fit_folder, sentloom, monkeypatch):
    """Run the command with some keys as answers."""

    def run(path, keys=""):
        monkeypatch.setattr("sys.stdin", Typed(keys))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            return sentloom("tick", fit_folder, "--terminal", "-o", path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return run


@pytest.fixture
def file(tick, fit_folder, tmp_path):
    """A file with some confirmed answers."""
    path = fit_folder.with_name(f"{CONFIRMED}.jsonl")
    if not path.exists():
        assert tick(path, "b" * CONFIRMED).returncode == 0
    return shutil.copy(path, tmp_path / "ticks.jsonl")


@pytest.fixture
def read(sentloom, tmp_path):
    """What the command says about a file of answers; one that it can read is not in its message, but the fit is."""

    def said(path):
        done = sentloom("tick", tmp_path / "no.fit", "--labels", path, "--terminal")
        assert done.returncode == 2
        return done.stderr

    return said


def queries(path):
    """The queries of the answers, by the documented format."""
    return [json.loads(line)["query"] for line in path.read_bytes().splitlines()[1:] if line]


def replaced(path, change=lambda content: content):
    """Save a changed file as editors do: under another name, which is then that of the file."""
    new = path.with_name("saved-by-an-editor")
    new.write_bytes(change(path.read_bytes()))
    new.replace(path)


@pytest.mark.parametrize(
    "content",
    [b"my notes, without a line feed", b"my notes\nand more\n", b'{"query": "x"}\n', b'{"ticks": 2, "base"', b"\n"],
)
def test_a_file_that_is_not_ours_is_refused_and_not_touched(content, tick, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    done = tick(path, "bbb")
    assert (done.returncode, path.read_bytes()) == (2, content)
    assert "notes.txt" in done.stderr


def test_a_damaged_first_line_is_refused_and_not_touched(file, tick):
    content = file.read_bytes().replace(b'"queries": ', b'"queries": 1', 1)
    file.write_bytes(content)
    done = tick(file, "bbb")
    assert (done.returncode, file.read_bytes()) == (2, content)
    assert "ticks.jsonl, line 1" in done.stderr


def test_an_empty_file_is_used_and_a_device_is_not(tick, tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert tick(tmp_path / "empty.jsonl", "bb").returncode == 0
    assert len(queries(tmp_path / "empty.jsonl")) == 2
    done = tick("/dev/full", "bb")
    assert (done.returncode, "/dev/full: this is not a regular file" in done.stderr) == (2, True)


@pytest.mark.parametrize("room", [0, 1, 40, -1])  # bytes of the next line that still fit; -1: all but its line feed
def test_a_full_disk_loses_nothing_that_was_confirmed(room, file, tick, fit_folder):
    before = file.read_bytes()
    if room < 0:
        copy = fit_folder.with_name("thirteen.jsonl")
        shutil.copy(file, copy)
        tick(copy, "b")
        room = copy.stat().st_size - len(before) - 1
    done = tick(file, [lambda: no_file_larger_than(len(before) + room), *"bbb"])
    assert (done.returncode, file.read_bytes()) == (2, before)
    assert "ticks.jsonl: " in done.stderr
    done = tick(file, "nnn")
    assert f"{CONFIRMED + 3} queries answered" in done.stdout
    assert len(set(queries(file))) == CONFIRMED + 3


def test_half_a_line_is_cut_off_before_the_next_answer(file, tick, read):
    before = file.read_bytes()
    last = before.splitlines(keepends=True)[-1]
    for end in (1, 60, len(last) - 22, len(last) - 3):
        file.write_bytes(before + last[:end])
        assert "no.fit" in read(file), "a line that was not written completely is no damage"
        assert f"{CONFIRMED + 1} queries answered" in tick(file, "n").stdout
        assert file.read_bytes().startswith(before)
        assert len(queries(file)) == CONFIRMED + 1


def test_a_last_line_without_a_line_feed_counts_and_the_next_answer_has_its_own_line(file, tick):
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert f"{CONFIRMED} queries answered" in tick(file).stdout
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert f"{CONFIRMED + 1} queries answered" in tick(file, "n").stdout
    assert len(set(queries(file))) == CONFIRMED + 1


def test_no_changed_bit_is_read_as_something_else(file, read):
    """Also in a file whose last line feed an editor removed."""
    whole, rng = file.read_bytes(), random.Random(0)
    ends = [len(whole) - place for place in range(1, 48)]
    for number, place in enumerate(ends + rng.sample(range(len(whole)), FLIPS)):
        content = bytearray(whole.rstrip(b"\n") if number % 2 else whole)
        content[place % len(content)] ^= 1 << rng.randrange(8)
        file.write_bytes(content)
        assert "ticks.jsonl" in read(file), f"byte {place}: {content[place % len(content)]!r}"


def test_the_error_about_a_damaged_line_names_it_and_the_others_can_be_kept(file, tick, read):
    lines = file.read_bytes().splitlines(keepends=True)
    damaged = lines[4].replace(b'"answer": "both"', b'"answer": "base"')
    file.write_bytes(b"".join([*lines[:4], damaged, *lines[5:]]))
    assert "ticks.jsonl, line 5: the line is damaged" in read(file)
    file.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    assert f"{CONFIRMED} queries answered" in tick(file, "n").stdout


@pytest.mark.parametrize("tail", [b"my own notes, no line feed", b"{'query': 1", b"my own notes\n", b'{"ticks": 2, '])
def test_other_content_after_answers_is_refused_and_not_touched(tail, file, tick, read):
    content = file.read_bytes() + tail
    file.write_bytes(content)
    done = tick(file, "b")
    assert (done.returncode, file.read_bytes()) == (2, content)
    assert f"ticks.jsonl, line {CONFIRMED + 2}: " in done.stderr
    assert f"line {CONFIRMED + 2}: " in read(file)


@pytest.mark.parametrize("first", [b'{"ticks": 3, "models": []}', b'{"ticks": 1, "base": "b"}', b'{"ticks": 10}'])
def test_another_version_is_named_and_not_touched(first, tick, read, tmp_path):
    path = tmp_path / "ticks.jsonl"
    path.write_bytes(first + b'\n{"another": "form"}\n')
    version = json.loads(first)["ticks"]
    for said in (read(path), tick(path, "b").stderr):
        assert f"it has version {version} of the format" in said
    assert path.read_bytes() == first + b'\n{"another": "form"}\n'


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content + b"\n",
        lambda content: content + b"\r\n \n\n",
        lambda content: content + b"  ",
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b"\n", b"\r\n").rstrip(),
        lambda content: content + bytes(7),  # what a power cut may leave
    ],
)
def test_what_editors_do_to_line_ends_changes_no_answer(edit, file, tick, read):
    before = queries(file)
    file.write_bytes(edit(file.read_bytes()))
    assert "no.fit" in read(file)
    assert f"{CONFIRMED + 2} queries answered" in tick(file, "nb").stdout
    after = [json.loads(line)["query"] for line in file.read_bytes().splitlines()[1:] if line.strip()]
    assert (after[:CONFIRMED], len(set(after))) == (before, CONFIRMED + 2)
    assert f"{CONFIRMED + 2} queries answered" in tick(file).stdout


@pytest.mark.parametrize(
    "change",
    [
        replaced,
        lambda path: replaced(path, bytes.rstrip),
        lambda path: path.write_bytes(path.read_bytes().rstrip()),
        lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
        lambda path: path.write_bytes(path.read_bytes() + b'{"query": "half a li'),
    ],
)
def test_a_file_that_was_saved_by_an_editor_meanwhile_is_continued(change, file, tick):
    done = tick(file, ["b", "n", lambda: change(file), "b", lambda: change(file), "b", lambda: change(file)])
    assert (done.returncode, f"{CONFIRMED + 4} queries answered" in done.stdout) == (0, True)
    assert f"{CONFIRMED + 4} queries answered" in tick(file).stdout
    assert len(set(queries(file))) == CONFIRMED + 4
    assert sorted(file.parent.glob("*.jsonl")) == [file]


LOSSES = {
    "removed": lambda path: path.unlink(),
    "older": lambda path: replaced(path, lambda content: b"".join(content.splitlines(True)[:-3])),
    "shorter": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-1])),
    "emptied": lambda path: path.write_bytes(b""),
    "notes": lambda path: path.write_bytes(path.read_bytes() + b"my own notes"),
    "lines": lambda path: path.write_bytes(path.read_bytes() + b"my own\nnotes\n"),
    "others": lambda path: replaced(path, lambda content: b"my own notes\n"),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "linked": lambda path: os.link(path, path.with_name("link")),
}


@pytest.mark.parametrize("last", ["", "b"], ids=["at the end", "before an answer"])
@pytest.mark.parametrize("name", LOSSES)
def test_what_else_was_changed_meanwhile_is_not_touched_and_every_saved_answer_is_kept(name, last, file, tick):
    after = []

    def change():
        LOSSES[name](file)
        after.append(file.read_bytes() if file.is_file() else file.is_dir())

    done = tick(file, ["b", "n", change, *last])
    assert (done.returncode, "queries answered" in done.stdout) == (2, False)
    assert (file.read_bytes() if file.is_file() else file.is_dir()) == after[0]
    kept = file.with_name("ticks-kept-1.jsonl")
    assert "the file was changed while answers were given: " in done.stderr
    assert f"All answers that were saved ({CONFIRMED + 2}) are in {kept}" in done.stderr
    assert f"{CONFIRMED + 3} queries answered" in tick(kept, "b").stdout
    assert len(set(queries(kept))) == CONFIRMED + 3


def test_answers_that_cannot_be_kept_are_not_lost_silently(file, tick):
    done = tick(file, ["b", file.unlink, lambda: no_file_larger_than(99), "b"])
    assert (done.returncode, list(file.parent.glob("*kept*"))) == (2, [])
    assert "it was removed" in done.stderr
    assert f"The {CONFIRMED + 1} answers could not be saved elsewhere: " in done.stderr


def test_answers_of_another_person_at_the_same_name_are_not_mixed_with_these(file, tick, tmp_path):
    assert tick(tmp_path / "other.jsonl", "bb").returncode == 0
    other = (tmp_path / "other.jsonl").read_bytes()
    done = tick(file, ["b", lambda: shutil.copy(tmp_path / "other.jsonl", file), "b"])
    assert (done.returncode, file.read_bytes()) == (2, other)
    assert len(set(queries(tmp_path / "ticks-kept-1.jsonl"))) == CONFIRMED + 1


def test_a_file_with_several_names_is_refused_and_not_touched(file, tick):
    before = file.read_bytes()
    os.link(file, file.with_name("link.jsonl"))
    for path in (file, file.with_name("link.jsonl")):
        done = tick(path, "b")
        assert (done.returncode, path.read_bytes()) == (2, before)
        assert "several names (hard links)" in done.stderr


def test_the_page_says_that_a_changed_file_was_not_written_to(file, fit_folder, sentloom, monkeypatch):
    """The page's address is known from the browser that would show it."""
    seen = []

    def browser(address):
        def answer(number):
            return httpx2.post(f"{address}answer", json={"number": number, "choice": "both"}, trust_env=False)

        number = httpx2.get(f"{address}state", trust_env=False).json()["question"]["number"]
        seen.append(answer(number).status_code)
        before = file.read_bytes()
        file.write_bytes(before + b"my own notes")
        seen.extend(answer(number + 1) for _ in range(2))
        file.write_bytes(before)
        seen.append(answer(number + 1).status_code)
        file.unlink()
        httpx2.post(f"{address}finish", trust_env=False)

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda address: threading.Thread(target=browser, args=[address]).start())
    done = sentloom("tick", fit_folder, "-o", file)
    saved, refused, again, restored = seen
    assert (saved, refused.status_code, restored, done.returncode) == (200, 507, 200, 2)
    assert f"({CONFIRMED + 1}) are in {file.with_name('ticks-kept-1.jsonl')}" in refused.json()["error"]
    assert refused.json() == again.json()
    assert "it was removed" in done.stderr
    assert len(queries(file.with_name("ticks-kept-2.jsonl"))) == CONFIRMED + 2
