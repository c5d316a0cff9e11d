"""The classifiers in a model folder."""

import json

import numpy as np
import pytest

from sentloom.classify import classifier as files
from sentloom.classify.classifier import Classifier, have_several, load, marks_of, save, split_labels
from sentloom.classify.heads import Kind, Settings
from sentloom.classify.learning import Abstention, Calibration, Choice, learn_from
from sentloom.errors import InputError, ModelError
from tests.classify.rows import blobs, pairs_of_labels

LABELS = ("delivery", "refund", "size", "zip code")


def classifier(kind=Kind.LOGISTIC, rows=None, several=False):
    choice = Choice(Settings(kind, 10), Calibration(2.0, 0.1 if several else 0.0), Abstention(0.4, 0.2, 0.9))
    head, kept = learn_from(choice.settings, rows or blobs(20), several)
    return Classifier("team", "message", LABELS, several, choice, head, kept)


@pytest.mark.parametrize("kind", Kind)
def test_a_saved_classifier_says_the_same(tmp_path, kind):
    ours, asked = classifier(kind), blobs(25, seed=5).vectors
    save([ours], tmp_path)
    (theirs,) = load(tmp_path, 16)
    assert [own.label for own in theirs.predict(asked)] == [own.label for own in ours.predict(asked)]
    said = [[own.probability for own in each.predict(asked)] for each in (ours, theirs)]
    np.testing.assert_allclose(*said, atol=0.01)  # rows are saved in half precision


def test_several_label_columns_are_saved_in_order(tmp_path):
    save([classifier(), classifier(rows=pairs_of_labels(40), several=True)], tmp_path)
    assert [own.several for own in load(tmp_path)] == [False, True]


def test_several_labels_are_joined():
    own = classifier(rows=pairs_of_labels(80), several=True)
    answers = own.predict(pairs_of_labels(30, seed=3).vectors)
    assert all(answer.label for answer in answers)
    assert any("|" in answer.label for answer in answers)


def test_no_file_is_a_pickle(tmp_path):
    save([classifier()], tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]


def test_a_new_label_is_learned_from_five_examples():
    rows = blobs(20, labels=4, spread=0.15)
    added = blobs(5, labels=6, spread=0.15, seed=1)
    fresh = added.vectors[-5:]  # around a direction that no known label has
    own = classifier(rows=rows).with_examples(fresh, ["invoice"] * 5)
    asked = blobs(20, labels=6, spread=0.15, seed=2)
    answers = np.array([answer.label for answer in own.predict(asked.vectors)])
    assert (answers[-20:] == "invoice").mean() > 0.9
    assert (answers[:80] == np.repeat(LABELS, 20)).mean() > 0.9


def test_a_model_without_a_classifier_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no classifier"):
        load(tmp_path)


def test_a_classifier_for_other_vectors_is_refused(tmp_path):
    save([classifier()], tmp_path)
    with pytest.raises(ModelError, match="384 dimensions, and the classifier needs 16"):
        load(tmp_path, 384)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / files.FACTS).write_text("{"),
        lambda folder: (folder / files.TENSORS).write_bytes(b"no tensors"),
        lambda folder: (folder / files.TENSORS).unlink(),
        lambda folder: (folder / files.FACTS).write_text((folder / files.FACTS).read_text().replace('"refund",', "")),
        lambda folder: (folder / files.FACTS).write_text(json.dumps({"version": 1, "classifiers": [3]})),
    ],
    ids=["no JSON", "no tensors", "a file is missing", "a label is missing", "no record"],
)
def test_a_damaged_classifier_is_refused(tmp_path, damage):
    save([classifier()], tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match="damaged"):
        load(tmp_path, 16)


def test_a_newer_classifier_is_refused(tmp_path):
    save([classifier()], tmp_path)
    facts = (tmp_path / files.FACTS).read_text()
    (tmp_path / files.FACTS).write_text(facts.replace('"version": 1', '"version": 2'))
    with pytest.raises(ModelError, match="newer sentloom"):
        load(tmp_path, 16)


@pytest.mark.parametrize(
    ("cells", "several"),
    [
        (["refund", "delay"], False),
        (["refund|delay", "refund"], True),
        (["refund|delay", "size|delay"], True),
        (["a|b", "other"], False),  # a name with a bar in it
    ],
)
def test_cells_with_several_labels_are_recognised(cells, several):
    assert have_several(cells) is several


def test_marks_by_hand():
    assert split_labels("refund | delay|refund", several=True) == ("refund", "delay")
    assert marks_of([("b",), ("a", "b")], ["a", "b"]).tolist() == [[False, True], [True, True]]
