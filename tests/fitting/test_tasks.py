"""What is held out: the task of each shape, its words, and pairs that belong together."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.general import general_task
from sentloom.fitting.tasks import held_out, high_pairs, in_words
from tests.small_data import build_dataset

SCORED = [("a b", "a c", 0.0), ("d e", "d f", 3.9), ("g h", "g i", 4.0), ("j k", "j l", 5.0)]
CASES = {
    Shape.PAIRS: ([("one", "eins"), ("two", "zwei")], "a text finds its partner among 2", [("one", "eins")]),
    Shape.PARALLEL: (
        [("one", "eins"), ("two", "zwei")],
        "a sentence finds its translation among 2, both ways",
        [("one", "eins")],
    ),
    Shape.TRIPLETS: (
        [("one", "eins", ["zwei"]), ("two", "zwei", ["eins"])],
        "the positive is nearer than the negative",
        [("one", "eins")],
    ),
    Shape.SCORED_PAIRS: (SCORED, "nearness goes with people's scores", [("g h", "g i"), ("j k", "j l")]),
    Shape.NLI: (
        [("p", "follows", "entailment"), ("p", "denies", "contradiction"), ("q", "perhaps", "neutral")],
        "the positive is nearer than the negative",
        [("p", "follows")],
    ),
}


@pytest.mark.parametrize("shape", CASES)
def test_labels_decide(shape, tmp_path):
    rows, words, related = CASES[shape]
    part = held_out("faq.csv", build_dataset(shape, rows), "en", tmp_path, None)
    assert part.labelled
    assert [in_words(task) for task in part.tasks] == [words]
    assert list(part.related[: len(related)]) == related


def test_raw_text_is_judged_by_views_of_itself(tmp_path):
    texts = [(f"word{n} is number {n} of many others here",) for n in range(12)]
    part = held_out("raw.txt", build_dataset(Shape.TEXTS, texts), None, tmp_path, None)
    assert not part.labelled
    assert "halves" in {task.name for task in part.tasks}
    assert all(in_words(task) != task.main for task in part.tasks)  # each is said in words
    assert all(len(view.split()) == len(text.split()) - 3 for text, view in part.related)


def test_scores_in_the_top_fifth_of_the_scale_are_pairs_to_learn_from():
    found = high_pairs(build_dataset(Shape.SCORED_PAIRS, SCORED))
    assert found.shape is Shape.PAIRS
    assert found.take([0, 1]) == {"anchor": ["g h", "j k"], "positive": ["g i", "j l"]}


def test_general_ability_has_words_of_its_own():
    assert in_words(general_task()) == "a paraphrase is nearer than a near miss"
