"""Examples: the items that changed most, and what both models found for them."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.labels import neighbour_task
from sentloom.evaluation.retrieval import search_set, search_task
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.examples import LONGEST, SHOWN, examples


def scores(*values):
    return {"ndcg@10": Score("mean", np.array(values, float)[:, None])}


@pytest.fixture
def shown(tmp_path, base):
    model = Encoder.load(base)

    def run(task, before, after):
        return examples((model, model), [task], ([before], [after]), open_memory(tmp_path))

    return run


def plain(count):
    items = tuple((f"question {n}", f"answer {n}") for n in range(count))
    return Task("faq.csv", "ndcg@10", {}, lambda lookup: {}, items=items)


def test_the_largest_changes_come_first_and_unchanged_items_are_left_out(shown):
    won, lost = shown(plain(4), scores(0.0, 0.5, 1.0, 0.4), scores(1.0, 0.5, 0.2, 0.6))
    assert [(example.asked, example.before, example.after) for example in won] == [
        ("question 0", 0, 100),
        ("question 3", 40, 60),
    ]
    assert [(example.asked, example.expected, example.change) for example in lost] == [("question 2", "answer 2", -80)]


def test_only_a_few_are_shown_and_long_texts_are_cut(shown):
    task = Task("faq.csv", "ndcg@10", {}, lambda lookup: {}, items=(("x" * 999, "y"),) * 40)
    won, lost = shown(task, scores(*[0.0] * 40), scores(*[1.0] * 40))
    assert (len(won), lost) == (SHOWN, ())
    assert won[0].asked == "x" * LONGEST + "..."


def test_a_search_shows_what_was_found(shown):
    rows = Rows({"anchor": ["one", "two"], "positive": ["eins", "zwei"]}, "faq.csv")
    task = search_task("faq.csv", search_set(rows), "faq.csv")
    (example,), _ = shown(task, scores(0.0, 1.0), scores(1.0, 1.0))
    assert example.found_before == example.found_after  # both are the same model here
    assert example.found_after in ("eins", "zwei")


def test_labelled_texts_show_the_nearest_row_after_its_label(shown):
    asked, known = (Rows({"text": texts, "label": ["x", "y"]}, "t.csv") for texts in (["one", "two"], ["one!", "two!"]))
    before, after = ({"accuracy": Score("mean", np.array(items)[:, None])} for items in ([0.0, 1.0], [1.0, 1.0]))
    (example,), _ = shown(neighbour_task("t.csv", asked, known), before, after)
    assert (example.asked, example.expected) == ("one", "x")
    assert example.found_after in ("x: one!", "y: two!")


def test_a_correlation_has_no_examples(shown):
    pairs = {"ndcg@10": Score("spearman", np.array([[0.1, 1], [0.2, 2]]))}
    assert shown(plain(2), pairs, pairs) == ((), ())
