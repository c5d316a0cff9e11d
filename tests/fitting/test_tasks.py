"""What is held out: the task of each shape, its words, and pairs that belong together."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.tasks import held_out, task_label, task_labels
from tests.small_data import build_dataset

SCORED = [("a b", "a c", 0.0), ("d e", "d f", 3.9), ("g h", "g i", 4.0), ("j k", "j l", 5.0)]
CASES = {
    Shape.PAIRS: ([("one", "eins"), ("two", "zwei")], "a query finds its answers among 2", [("one", "eins")]),
    Shape.PARALLEL: (
        [("one", "eins"), ("two", "zwei")],
        "a sentence finds its translation among 2, in both directions",
        [("one", "eins")],
    ),
    Shape.TRIPLETS: (
        [("one", "eins", ["zwei"]), ("two", "zwei", ["eins", "drei"])],
        "a query finds its answers among 3",
        [("one", "eins")],
    ),
    Shape.SCORED_PAIRS: (SCORED, "similarity agrees with people's scores", [("g h", "g i"), ("j k", "j l")]),
    Shape.NLI: (
        [("p", "follows", "entailment"), ("p", "denies", "contradiction"), ("q", "perhaps", "neutral")],
        "the positive ranks closer than the negative",
        [("p", "follows")],
    ),
}


@pytest.mark.parametrize("shape", CASES)
def test_labels_decide(shape):
    rows, words, related = CASES[shape]
    part = held_out("faq.csv", build_dataset(shape, rows))
    assert part.labelled
    assert [task_label(task) for task in part.tasks] == [words]
    assert list(part.related[: len(related)]) == related


def test_triplets_search_and_are_compared_with_their_own_negatives():
    rows = [("one", "eins", ["zwei"]), ("two", "zwei", ["eins"]), ("three", "drei", ["eins"])]
    corpus = Corpus(texts=("vier",))
    (task,) = held_out("faq.csv", build_dataset(Shape.TRIPLETS, rows), corpus).tasks
    places = {"one": 0, "eins": 0, "two": 1, "zwei": 1, "three": 2, "drei": 3, "vier": 2}  # "vier" is nearest to three

    def lookup(texts, role="symmetric"):
        return np.eye(4)[[places[text] for text in texts]] + np.eye(4)[1] * 0.1

    scores = task.score(lookup)
    assert (task.main, scores["recall@1"].value) == ("ndcg@10", pytest.approx(200 / 3))
    assert scores["triplet accuracy"].value == pytest.approx(200 / 3)  # drei and eins are as far from three


def test_pairs_are_the_items_of_a_correlation():
    (task,) = held_out("sts.csv", build_dataset(Shape.SCORED_PAIRS, SCORED)).tasks
    assert task.item_count == 4


def test_raw_text_is_judged_by_views_of_itself():
    texts = [(f"word{n} is number {n} of many others here",) for n in range(12)]
    part = held_out("raw.txt", build_dataset(Shape.TEXTS, texts))
    assert not part.labelled
    assert "halves" in {task.name for task in part.tasks}
    assert all(task_label(task) != task.main for task in part.tasks)  # each is said in words
    assert all(len(view.split()) == len(text.split()) - 3 for text, view in part.related)


def test_general_ability_has_words_of_its_own():
    assert task_label(general_task()) == "a paraphrase ranks closer than a near miss"


def test_several_tasks_are_told_apart_by_their_files():
    rows = build_dataset(Shape.PAIRS, [("one", "eins"), ("two", "zwei")])
    tasks = [task for name in ("in/a.csv", "in/b.csv") for task in held_out(name, rows).tasks]
    assert task_labels(tasks[:1]) == ["a query finds its answers among 2"]
    assert task_labels(tasks) == [f"a query finds its answers among 2 ({name})" for name in ("a.csv", "b.csv")]
