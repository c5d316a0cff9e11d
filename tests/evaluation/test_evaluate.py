"""`evaluate` from Python: labels, seeds, aggregations and the cache."""

import numpy as np
import pytest

from sentloom.data import read
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import Scoring, evaluate, open_memory, parse_models

HEAD = "score\tsentence1\tsentence2\tsubset\n"


class Letters:
    """A model whose vectors are letter counts."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def encode(self, texts, role="symmetric", show_progress=False):
        counts = [[text.count(letter) + (letter == "a") * self.weight for letter in "abcd"] for text in texts]
        return np.array(counts, np.float32)

    def fingerprint(self):
        return f"letters {self.weight}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sts").mkdir()
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 6)) for _ in range(60)]
    rows = [f"{i % 5}\t{words[i]}\t{words[i + 30]}\t{'xy'[i % 2]}\n" for i in range(30)]
    (tmp_path / "sts/STS12.tsv").write_text(HEAD + "".join(rows))
    (tmp_path / "sts/STS13.tsv").write_text("score\tsentence1\tsentence2\n" + "1\ta\tb\n2\tab\tabc\n3\td\td\n")
    return tmp_path


def test_models_have_labels_and_seeds_are_averaged(folder):
    models = {"one": [Letters()], "three": [Letters(weight) for weight in (1.0, 2.0, 3.0)]}
    found = evaluate(models, how=Scoring(folder, checked=False))
    cells = found.suites[0].sets[0].cells
    alone = [evaluate({"m": [one]}, how=Scoring(folder, checked=False)) for one in models["three"]]
    values = [one.suites[0].sets[0].cells["m"]["spearman"].value for one in alone]
    assert cells["three"]["spearman"].value == pytest.approx(np.mean(values))
    assert cells["three"]["spearman"].deviation == pytest.approx(np.std(values, ddof=1))
    assert cells["one"]["spearman"].value == pytest.approx(values[0])
    assert [one["sha256"] for one in found.models["three"]["models"]] == ["letters 1.0", "letters 2.0", "letters 3.0"]


def test_a_single_model_is_one_seed_and_models_in_a_list_are_numbered(folder):
    expected = evaluate({"m": [Letters(2.0)]}, how=Scoring(folder, checked=False)).scores["m"]
    for models, label in (
        ({"x": Letters(2.0)}, "x"),
        ([Letters(1.0), Letters(2.0)], "Letters 2"),
        (Letters(2.0), "Letters"),
    ):
        assert evaluate(models, how=Scoring(folder, checked=False)).scores[label] == expected


@pytest.mark.parametrize(("models", "message"), [([], "no model is given"), ({}, "no model"), ({"x": []}, "for 'x'")])
def test_no_model_is_refused(models, message):
    with pytest.raises(InputError, match=message):
        evaluate(models)


def test_another_aggregation_skips_sets_without_known_subsets(folder):
    found = evaluate({"m": [Letters()]}, how=Scoring(folder, checked=False, aggregation="wmean")).suites[0]
    assert [one.main for one in found.sets] == ["spearman-wmean"]
    assert "its sub-sets are not known" in found.missing["STS13"]
    assert not found.averages  # its only set is a part of the published one


def test_another_aggregation_applies_to_single_sts_sets_but_not_to_other_suites(folder):
    (folder / "own.tsv").write_text("score\tsentence1\tsentence2\n1\ta\tb\n2\tab\tabc\n3\td\td\n")
    names = ["STS12", f"pairs:{folder / 'own.tsv'}"]
    alone, own = evaluate({"m": [Letters()]}, names, how=Scoring(folder, checked=False, aggregation="mean")).suites
    assert [one.main for one in (*alone.sets, *own.sets)] == ["spearman-mean", "spearman"]


def test_an_unknown_aggregation_is_refused(folder):
    with pytest.raises(InputError, match="all, mean, wmean"):
        evaluate({"m": [Letters()]}, how=Scoring(folder, checked=False, aggregation="median"))


def test_cached_scores_equal_computed_ones(folder, tmp_path):
    memory = open_memory(tmp_path / "kept")
    plain, first, second = (
        evaluate({"m": [Letters()]}, how=Scoring(folder, checked=False), memory=kept) for kept in (None, memory, memory)
    )
    assert plain == first == second


def test_parse_models():
    assert parse_models(["embedded", "a=x", "b=y,z", "runs/1,runs/2"]) == {
        "embedded": ("embedded",),
        "a": ("x",),
        "b": ("y", "z"),
        "runs/1,runs/2": ("runs/1", "runs/2"),
    }
    for wrong in (["a", "a"], ["a=x,"], ["a="]):
        with pytest.raises(InputError):
            parse_models(wrong)


def test_data_in_memory_is_scored_by_its_shape():
    pairs = [("aaa", "aab"), ("bbb", "bba")]
    found = evaluate({"m": [Letters()]}, [read(pairs)], Scoring(checked=False))
    assert found.scores == {"m": {"the list": 100.0}}


def test_data_of_the_same_name_are_numbered_and_the_result_is_a_short_table():
    right, wrong = [("aaa", "aab"), ("bbb", "bba")], [("aaa", "bbb"), ("bba", "aab")]
    found = evaluate({"m": [Letters()], "<b>": [Letters()]}, [right, wrong], Scoring(checked=False))
    assert list(found.scores["m"]) == ["the list 1", "the list 2"]
    first, second = found.scores["m"].values()
    assert first == 100 > second
    assert repr(found).splitlines()[:2] == [
        "set         score    m       <b>",
        "the list 1  ndcg@10  100.00  100.00",
    ]
    assert "<th>the list 2</th><td>ndcg@10</td>" in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()
