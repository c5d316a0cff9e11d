"""A writer that is killed while it replaces a model folder leaves a model that the next reader finds."""

import ctypes
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.commands import EXIT_OK, run

WRITE = ("lab", "vocabulary", "base", "texts.txt", "-o", "m", "--size", "60")
READ = ("encode", "few.txt", "-o", "v.npy", "--model", "m")


def fill_kitchen(folder):
    """A model, and texts whose words are new to it."""
    build_model_folder("bert", folder / "base")
    (folder / "few.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    texts = [f"{sentence} {number}" for number in range(100) for sentence in SENTENCES]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")


@pytest.fixture
def kitchen(tmp_path, one_thread):
    fill_kitchen(tmp_path)
    return tmp_path


def kill_at(number, before, exchanges):
    """Break this process: it is killed before or after it renames the model folder for this time, 0 for never.

    Without `exchanges`, the system cannot exchange two folders in one step.
    """
    library, replace, seen = ctypes.CDLL, os.replace, []

    def renaming(rename, *paths):
        of_model = "m" in {Path(os.fsdecode(path)).name for path in paths}
        seen.extend([True] if of_model else [])
        kill = of_model and len(seen) == number
        if kill and before:
            os.kill(os.getpid(), signal.SIGKILL)
        done = rename()
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def exchange(here, part, there, target, flags):
        return renaming(lambda: library(None).renameat2(here, part, there, target, flags), part, target)

    ours = SimpleNamespace(renameat2=exchange) if exchanges else SimpleNamespace()
    ctypes.CDLL = lambda name, *others, **options: ours if name is None else library(name, *others, **options)
    os.replace = lambda source, target, **options: renaming(lambda: replace(source, target), source, target)


KILLS = {
    "before the exchange": (1, True, True),
    "after the exchange": (1, False, True),
    "before two renames": (1, True, False),
    "between two renames": (1, False, False),
    "after two renames": (2, False, False),
}


QUICK = ("after the exchange", "between two renames")


@pytest.mark.parametrize(
    ("number", "before", "exchanges"),
    [pytest.param(*kill, id=name, marks=() if name in QUICK else pytest.mark.long) for name, kill in KILLS.items()],
)
def test_a_model_whose_writer_was_killed_can_be_read(number, before, exchanges, kitchen, sentloom, monkeypatch):
    monkeypatch.chdir(kitchen)
    assert sentloom(*WRITE).returncode == EXIT_OK
    killed = run(kitchen, kitchen / "log", WRITE, before=lambda: kill_at(number, before, exchanges))
    assert killed.code == -signal.SIGKILL, killed.output
    assert (kitchen / "m").exists() or not exchanges
    done = sentloom(*READ)
    assert done.returncode == EXIT_OK, done.stderr
    assert sentloom(*WRITE).returncode == EXIT_OK
    assert list(kitchen.glob(".m*")) == [], "the next writer removes what is left"


def test_every_command_that_reads_a_model_moves_it_back(kitchen, sentloom, monkeypatch):
    monkeypatch.chdir(kitchen)
    assert sentloom(*WRITE).returncode == EXIT_OK
    assert run(kitchen, kitchen / "log", WRITE, before=lambda: kill_at(1, False, False)).code == -signal.SIGKILL
    (aside,) = kitchen.glob(".m.part-*.old")
    (kitchen / "m.fit").mkdir()  # whose model is not missing
    export = ("export", "m", "--to", "sentence-transformers", "-o", "exported")
    for command in (("search", "m", "a dog", "--in", "few.txt"), READ, export):
        done = sentloom(*command)
        assert done.returncode == EXIT_OK, done.stderr
        (kitchen / "m").rename(aside)
