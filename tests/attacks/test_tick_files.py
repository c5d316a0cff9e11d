"""Files of ticks: what is not ours is not touched, and nothing that was confirmed is lost or read as something else."""

import io
import json
import random
import resource
import shutil

import pytest

from tests.ticking.small_fit import build_fit_folder

CONFIRMED = 12
FLIPS = 50


class Typed(io.StringIO):
    """Lines that somebody types on a machine whose disk is full: a write is cut off where a file has a given size."""

    def __init__(self, lines, largest):
        super().__init__(lines)
        self.largest = largest

    def readline(self, size=-1):
        if self.largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return super().readline(size)


@pytest.fixture(scope="module")
def fit_folder(tmp_path_factory, one_thread):
    return build_fit_folder(tmp_path_factory.mktemp("fit"))


@pytest.fixture
def tick(fit_folder, sentloom, monkeypatch):
    """Run the command with some lines as answers; with a limit on the size of files from the first answer on."""

    def run(path, keys="", largest=None):
        monkeypatch.setattr("sys.stdin", Typed("".join(f"{key}\n" for key in keys), largest))
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
    return [json.loads(line)["query"] for line in path.read_bytes().splitlines()[1:]]


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
    done = tick(file, "bbb", largest=len(before) + room)
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
