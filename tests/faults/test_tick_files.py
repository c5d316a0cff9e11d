"""Files of ticks, damaged bit by bit, cut off by full disks at every byte, and left by processes that were killed."""

import io
import json
import random
import resource
import time
from pathlib import Path

import pytest

from tests.faults.commands import EXIT_OK, EXIT_REFUSED, begin
from tests.faults.conftest import Tally
from tests.ticking.small_fit import build_fit_folder

FAULT = "damaged, cut off and killed files of ticks"

ANSWERS, FLIPS, CUTS, KILLS = 12, 2000, 100, 20


@pytest.fixture(scope="module")
def place(tmp_path_factory, one_thread) -> Path:
    return build_fit_folder(tmp_path_factory.mktemp("ticks")).parent


class Typed(io.StringIO):
    """Answers, given on a disk that is full where a file has `largest` bytes, or with a pause before each."""

    def __init__(self, count: int, largest: int | None = None, pause: float = 0) -> None:
        super().__init__("b\n" * count)
        self.largest, self.pause = largest, pause

    def readline(self, size: int | None = -1) -> str:
        time.sleep(self.pause)
        if self.largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return super().readline(-1 if size is None else size)


def ticking(monkeypatch, sentloom, path: Path, typed: Typed):
    """The command in this process, with the limit that the typed lines set removed again."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr("sys.stdin", typed)
    try:
        return sentloom("tick", path.parent / "model.fit", "--terminal", "-o", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def whole(place, sentloom, monkeypatch) -> bytes:
    path = place / "whole.jsonl"
    if not path.exists():
        assert ticking(monkeypatch, sentloom, path, Typed(ANSWERS)).returncode == EXIT_OK
    return path.read_bytes()


def test_every_changed_bit_is_noticed(whole, place, sentloom, tally: Tally):
    path, rng = place / "flipped.jsonl", random.Random(1)
    for number in range(FLIPS):
        content = bytearray(whole if number % 4 else whole.rstrip(b"\n"))
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        with tally.case(f"byte {at}, bit {bit}"):
            done = sentloom("tick", place / "no.fit", "--labels", path, "--terminal")
            assert done.returncode == EXIT_REFUSED
            assert "flipped.jsonl" in done.stderr, "it was read as if nothing had happened"


def test_a_disk_that_is_full_at_some_byte(whole, place, sentloom, monkeypatch, tally: Tally):
    path, last = place / "full.jsonl", whole.splitlines()[-1]
    for room in random.Random(2).sample(range(len(last)), CUTS):
        with tally.case(f"{room} bytes"):
            path.write_bytes(whole)
            done = ticking(monkeypatch, sentloom, path, Typed(3, largest=len(whole) + room))
            assert (done.returncode, path.read_bytes()) == (EXIT_REFUSED, whole), done.stderr
            done = ticking(monkeypatch, sentloom, path, Typed(1))
            assert f"{ANSWERS + 1} queries answered" in done.stdout


def test_a_killed_process_leaves_every_answer_that_it_confirmed(whole, place, sentloom, monkeypatch, tally: Tally):
    path, total = place / "killed.jsonl", 0
    for number in range(KILLS):
        with tally.case(f"kill {number}"):
            path.unlink(missing_ok=True)
            log = place / f"{number}.log"

            def typed() -> None:
                monkeypatch.setattr("sys.stdin", Typed(40, pause=0.005))

            child = begin(place, log, ("tick", "model.fit", "--terminal", "-o", str(path)), before=typed)
            while not path.exists():
                assert child.poll() is None, log.read_text("utf-8")
            time.sleep(0.01 * number)
            child.kill()
            confirmed = log.read_text("utf-8").count(" answered")
            done = ticking(monkeypatch, sentloom, path, Typed(0))
            assert done.returncode == EXIT_OK, done.stderr
            kept = [json.loads(line)["query"] for line in path.read_bytes().splitlines()[1:]]
            assert len(kept) >= confirmed
            total += confirmed
    assert total > KILLS, "they were killed before they had confirmed anything"
