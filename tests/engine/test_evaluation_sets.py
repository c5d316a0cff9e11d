"""Sets that models are scored on while they are made."""

import numpy as np
import pytest

from sentloom.engine.evaluation_sets import EvaluationSet, find_evaluation_set, sentences_of
from sentloom.evaluation.task import Score, Task, TaskSettings


def score(lookup):
    return {
        "mean": Score("mean", lookup(["a", "bb"])[:, :1].astype(np.float64)),
        "other": Score("mean", np.ones((1, 1))),
    }


TASK = Task(
    "toy",
    "mean",
    {"symmetric": ["a", "bb", "a"], "query": ["c"]},
    score,
    "toy.tsv",
    "1",
    TaskSettings(others={"folds": 5}),
)


class Lengths:
    """A model whose vectors are lengths of texts."""

    def encode(self, texts, role="symmetric", show_progress=False):
        return np.array([[len(text), 1] for text in texts], np.float32)

    def fingerprint(self):
        return "lengths"


def test_the_sentences_of_a_task_are_distinct_and_numbered():
    data = sentences_of(TASK)
    assert data.column("text").to_pylist() == ["a", "bb", "c"]
    assert data.place(1) == "toy (toy.tsv), sentence 2"


def test_the_main_score_is_reported():
    one = EvaluationSet("toy", TASK, sentences_of(TASK))
    assert one.score(Lengths()) == pytest.approx(100 * (1 + 2) / 2)
    assert one.metric == "mean of {'folds': 5}"


def test_a_file_is_a_set(tmp_path):
    (tmp_path / "own.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\ne\tf\t3\n")
    found = find_evaluation_set(str(tmp_path / "own.tsv"), None)
    assert sorted(found.data.column("text").to_pylist()) == list("abcdef")
