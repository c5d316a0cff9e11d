"""Cached scores are complete, and damage is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.evaluation.bench import read_scores, score_file, write_scores
from sentloom.evaluation.task import Score, Task, TaskSettings

TASK = Task("a", "accuracy", {}, lambda lookup: {}, sha256="1")


def test_cached_scores_round_trip(tmp_path):
    scores = {
        "spearman-wmean": Score(
            "spearman", np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2, weighted=True
        ),
        "accuracy": Score("accuracy", np.array([[0.0, 1.0], [1.0, 1.0]]), clusters=np.array([4, 2])),
    }
    path = score_file(tmp_path, "model", TASK)
    write_scores(path, scores)
    back = read_scores(path)
    assert {name: one.value for name, one in back.items()} == {name: one.value for name, one in scores.items()}
    assert back["spearman-wmean"].weighted
    assert back["spearman-wmean"].clusters is None
    assert back["accuracy"].groups is None
    assert back["accuracy"].clusters.tolist() == [4, 2]


@pytest.mark.parametrize("cut", [0, 5, 60])
def test_a_damaged_score_file_is_ignored(tmp_path, cut):
    path = tmp_path / "scores.safetensors"
    write_scores(path, {"accuracy": Score("accuracy", np.array([[0.0, 1.0]]))})
    path.write_bytes(path.read_bytes()[:cut])
    assert read_scores(path) is None
    assert read_scores(tmp_path / "none") is None


def test_any_flipped_bit_of_a_score_file_is_detected(tmp_path, capsys):
    """Wherever a bit is flipped (a number, a metric, a flag, a name), the original scores or None are read."""
    path = tmp_path / "s.safetensors"
    write_scores(path, {"f1": Score("f1", np.array([[0.5, 1.0]]), np.array([3]), True, np.array([6]))})
    content = path.read_bytes()
    for at in range(len(content)):
        for bit in (1, 2, 64):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            found = read_scores(path)
            if found is not None:  # one space of the header replaced by another
                one = found["f1"]
                assert (list(found), one.metric, one.weighted) == (["f1"], "f1", True)
                assert one.items.tolist() == [[0.5, 1.0]]
                assert (one.groups.tolist(), one.clusters.tolist()) == ([3], [6])
    assert "s.safetensors is damaged" in capsys.readouterr().err


def test_the_file_depends_on_model_set_content_and_settings(tmp_path):
    tasks = [
        TASK,
        replace(TASK, name="b"),
        replace(TASK, sha256="2"),
        replace(TASK, settings=TaskSettings(others={"folds": 5})),
    ]
    places = {score_file(tmp_path, model, task) for task in tasks for model in ("one", "other")}
    assert len(places) == 8
    assert score_file(tmp_path, "one", replace(TASK, source="another copy")) in places


def test_the_same_scores_make_the_same_bytes(tmp_path):
    scores = {name: Score("accuracy", np.array([[0.0, 1.0]])) for name in ("one", "two", "three")}
    written = set()
    for number in range(20):
        write_scores(tmp_path / f"{number}.safetensors", scores)
        written.add((tmp_path / f"{number}.safetensors").read_bytes())
    assert len(written) == 1
