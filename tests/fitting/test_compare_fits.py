"""Two fits of the same data: a second use of its test rows, and a comparison on the same rows."""

import json
import shutil
from dataclasses import dataclass

import pytest

from sentloom import Fit, fit
from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.data.writers import write
from sentloom.errors import InputError
from sentloom.evaluation.significance import corrected_level
from sentloom.fitting.compare_fits import compare_fits, corpus_texts
from sentloom.fitting.training_sets import write_search_corpus
from sentloom.lab import compare
from tests.fitting import small_base
from tests.fitting.test_training_sets import input_of
from tests.small_data import build_dataset


@dataclass
class Two:
    first: Fit
    second: Fit
    folders: tuple


@pytest.fixture(scope="module")
def two(base, tmp_path_factory):
    """Two fits, the second with more steps and some more rows."""
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTLOOM_CACHE", str(folder / "cache"))
        patch.setenv("SENTLOOM_SCRATCH", str(folder / "scratch"))
        fewer, more = small_base.pairs(folder / "some.tsv", 400), small_base.pairs(folder / "more.tsv", 440)
        first = fit(fewer, folder / "old", base=str(base), budget="10steps")
        second = fit(more, folder / "new", base=str(base), budget="20steps", force=True)
    return Two(first, second, (folder / "old.fit", folder / "new.fit"))


def test_a_second_fit_on_nearly_the_same_rows_is_a_second_use_and_claims_less(two):
    first, second = two.first.result, two.second.result
    assert (first.uses, second.uses) == (1, 2)
    assert first.test_sha256 != second.test_sha256
    assert (first.total.level, second.total.level) == (0.95, corrected_level(2))
    assert "model number 2" in (two.folders[1] / "report.md").read_text("utf-8")


def test_fits_are_compared_on_rows_that_neither_has_seen(two, tmp_path):
    comparison = compare([str(folder) for folder in two.folders], tmp_path)
    assert comparison.verdict in ("better", "no difference shown", "worse")
    assert comparison.verdict_line.startswith(f"VERDICT {comparison.verdict} ")
    assert comparison.total.documents == 440
    assert 10 <= comparison.rows <= two.second.result.total.items
    assert comparison.settings["training rows"][0] != comparison.settings["training rows"][1]
    assert json.loads((tmp_path / "compare.json").read_text())["rows"] == comparison.rows
    assert comparison.verdict_line in (tmp_path / "compare.md").read_text()


def test_a_fit_compared_with_itself_shows_no_difference_and_is_no_use(two, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path))
    comparison = compare_fits(two.folders[1], two.folders[1])
    assert not (tmp_path / "test-uses").exists()
    assert (comparison.total.difference, comparison.left_out, comparison.settings) == (0, 0, {})
    assert comparison.total.before == pytest.approx(two.second.result.total.after)
    assert comparison.verdict == "no difference shown"


def test_titled_documents_were_trained_on_as_texts_too(two, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "copy.fit"
    shutil.copytree(two.folders[1], copy)
    texts = read(["another text", *read(copy / "data" / "1-pairs-train.parquet")["positive"]])
    write(texts, copy / "data" / "1-texts-train.parquet")
    comparison = compare_fits(two.folders[0], copy)
    assert comparison.total.documents == 440  # the answers of the pairs
    assert compare_fits(copy, two.folders[1]).left_out == 0


def test_each_input_searches_its_own_texts_and_those_that_the_user_added(tmp_path):
    first, second = (
        build_dataset(Shape.PAIRS, [(f"{name} {n}", answer) for n, answer in enumerate(answers)])
        for name, answers in (("a", ["yes", "no"]), ("b", ["no", "never"]))
    )
    write_search_corpus([input_of(first), input_of(second)], ["more", "never"], tmp_path / "corpus.parquet")
    assert corpus_texts(tmp_path, 1) == ["more", "never", "yes", "no"]
    assert corpus_texts(tmp_path, 2) == ["more", "never", "no"]
    assert read(tmp_path / "corpus.parquet")["text"] == ["more", "never", "yes", "no"]  # as `sentloom search` reads it
    assert corpus_texts(tmp_path / "none", 1) == []


def test_recipes_and_fits_are_never_mixed(two, tmp_path):
    with pytest.raises(InputError, match="two fits, or recipes only"):
        compare([str(two.folders[0]), "small-synthesizer"], tmp_path)
    with pytest.raises(InputError, match="1 names are given, of which 1 are fits"):
        compare([str(two.folders[0])])
    with pytest.raises(InputError, match="there is no output folder"):
        compare("small-synthesizer")


def test_a_fit_without_its_model_is_refused(two, tmp_path):
    (tmp_path / "a.fit").mkdir()
    (tmp_path / "a.fit" / "report.json").write_bytes((two.folders[0] / "report.json").read_bytes())
    with pytest.raises(InputError, match=r"its train rows are missing in .*a\.fit") as caught:
        compare_fits(tmp_path / "a.fit", two.folders[1])
    assert caught.value.where == str(tmp_path / "a.fit")
    shutil.copytree(two.folders[0] / "data", tmp_path / "a.fit" / "data")
    with pytest.raises(InputError, match="its model is missing") as caught:
        compare_fits(two.folders[1], tmp_path / "a.fit")
    assert caught.value.where == str(tmp_path / "a.fit")


@pytest.mark.parametrize("place", [0, 1])
def test_the_fit_that_is_missing_or_damaged_is_named(two, tmp_path, place):
    names = [str(folder) for folder in two.folders]
    names[place] = str(tmp_path / "b.fit")
    with pytest.raises(InputError, match="there is no such folder") as caught:
        compare(names)
    assert caught.value.where == names[place]
    (tmp_path / "b.fit").mkdir()
    with pytest.raises(InputError, match=r"its report\.json is missing") as caught:
        compare(names)
    assert caught.value.where == names[place]
    shutil.copytree(two.folders[place] / "data", tmp_path / "b.fit" / "data")
    (tmp_path / "b.fit" / "report.json").write_text("{")
    with pytest.raises(InputError, match="the result of a fit") as caught:
        compare(names)
    assert caught.value.where == str(tmp_path / "b.fit" / "report.json")
