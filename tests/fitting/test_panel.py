"""The panel's tasks: hand-made sentences, hand-made vectors, and a small real encoder."""

import random
from pathlib import Path
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sentloom import Encoder
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.task import Score
from sentloom.fitting.panel import (
    DRAWS,
    PANEL,
    few_words,
    halves,
    halves_task,
    is_at_chance,
    panel,
    view_task,
    without_some_words,
)
from tests.encoder.small_models import SENTENCES, build_model_folder


class Table:
    """A model that knows the vector of each text."""

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, texts, *, role="symmetric", show_progress=False):
        return np.array([self.vectors[text] for text in texts], np.float32)

    def fingerprint(self):
        return "table"


class Words:
    """A model that counts words: what shares words is near."""

    def __init__(self, width=4096):
        self.width = width

    def encode(self, texts, *, role="symmetric", show_progress=False):
        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.casefold().split():
                row[crc32(word.encode()) % self.width] += 1
        return rows


def by_name(tasks):
    return {task.name: task for task in tasks}


def test_halves_are_cut_behind_the_middle_word():
    assert halves(["one two three four five six"]) == [("one two three", "four five six")]
    assert halves(["one  two three four five six seven"]) == [("one two three four", "five six seven")]
    assert halves(["one two three four five"]) == []


def test_scripts_without_spaces_are_cut_behind_the_middle_character():
    assert halves(["今天天气很好我们去公园散步"]) == [("今天天气很好我", "们去公园散步")]
    assert halves(["今天天气很好"]) == []


def test_a_third_of_the_words_goes_by_a_chance_that_belongs_to_the_text():
    text = "one two three four five six"
    short = without_some_words(text)
    assert len(short.split()) == 4
    assert [word for word in text.split() if word in short.split()] == short.split()
    assert short == without_some_words(text)
    assert len({tuple(text.split().index(word) for word in without_some_words(f"{text} {n}").split()[:4])
                for n in range(20)}) > 1  # fmt: skip
    assert without_some_words("one") == "one"
    assert len(without_some_words("今天天气很好我们去公园散步")) == 13 - 4


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=12), st.floats(0, 1))
def test_what_is_left_stands_in_its_order_and_never_is_nothing(words, share):
    left = iter(without_some_words(" ".join(words), share).split())
    kept = without_some_words(" ".join(words), share).split()
    assert len(kept) == max(1, len(words) - round(share * len(words)))
    remaining = next(left, None)
    for word in words:
        remaining = next(left, None) if word == remaining else remaining
    assert remaining is None


def test_few_words_are_a_third_of_them_drawn_several_times():
    drawn = few_words("one two three four five six seven eight nine")
    assert {len(view.split()) for view in drawn} == {3}
    assert 1 < len(drawn) == len(set(drawn)) <= DRAWS
    assert few_words("one two three four five") == []


def test_finding_scores_by_hand():
    # p, of a, is nearer to b: rank 2. q and s, of b, are nearest to b: rank 1.
    model = Table(p=[1, 1], q=[0, 1], r=[0.4, 1], s=[1, 1], a=[1, 0.2], b=[0.5, 1], c=[-1, 0])
    task = view_task("x", ["a", "b", "c"], [["p"], ["q", "s"], ["C"]])
    (scores,) = score_tasks(model, [task])
    assert scores["mrr@10"].items[:, 0].tolist() == [0.5, 1.0], "c has no view but itself"
    assert scores["recall@1"].value == 50
    assert scores["recall@10"].value == 100
    assert (task.settings.items, task.settings.documents) == (2, 3)
    mixed = view_task("x", ["a", "b", "c"], [["p", "q"], ["r"], []])  # a's views have its rank at 2 and at 2
    model.vectors["q"] = [1, 0.1]  # and now at 2 and at 1: the item is their mean
    assert score_tasks(model, [mixed])[0]["mrr@10"].items[:, 0].tolist() == [0.75, 1.0]


def test_a_view_that_two_texts_share_or_that_is_another_text_finds_either():
    model = Table(**{"both": [0, 1], "a b": [1, 0], "a b c": [0.2, 1], "d": [-1, 0], "A  B": [1, 0]})
    task = view_task("x", ["a b", "a b c", "d"], [["both"], ["both", "A  B"], []])
    assert score_tasks(model, [task])[0]["mrr@10"].items[:, 0].tolist() == [1.0, 1.0]


def test_equal_halves_are_one_document():
    task = halves_task(["one two three same end here", "four five six SAME end here", "one two three another end now"])
    assert task.settings.documents == 2
    assert task.settings.items == 2, "one two three, with two right answers, and four five six"
    ends = {"same end here": [1, 0.1], "another end now": [1, 0.5]}
    (scores,) = score_tasks(Table(**{"one two three": [1, 0], "four five six": [1, 0]}, **ends), [task])
    assert scores["mrr@10"].value == 100
    assert scores["recall@1"].items[:, 0].tolist() == [0.5, 1.0]


def test_the_panel_is_halves_and_few_words_and_leaves_out_a_task_without_queries():
    assert tuple(by_name(panel(SENTENCES))) == PANEL
    assert panel(["too short", "this too"]) == []


def test_a_repeated_sentence_counts_once():
    texts = [f"sentence number {n} speaks about thing {n} and nothing else" for n in range(20)]
    tasks = by_name(panel([*texts, texts[0].upper()]))
    assert tasks["few-words"].settings.documents == 20


def random_sentences(number, words):
    draw = random.Random(3)
    return [" ".join(draw.choice(words) for _ in range(draw.randint(6, 24))) for _ in range(number)]


def halves_recall(model, texts):
    task = halves_task(texts)
    (scores,) = score_tasks(model, [task])
    return scores["recall@10"], task.settings.documents


def test_random_words_are_at_chance_and_sentences_about_something_are_not():
    words = [f"w{n}" for n in range(400)]
    assert is_at_chance(*halves_recall(Words(), random_sentences(300, words)))
    draw = random.Random(4)
    about = [" ".join(draw.choice(words[8 * topic : 8 * topic + 8]) for _ in range(10)) for topic in range(50)]
    assert not is_at_chance(*halves_recall(Words(), about))


def test_chance_is_the_exact_binomial():
    # 100 queries among 100 documents: 10 hits are expected; 18 have p = 0.0100 (not below), 19 p = 0.0046
    def hits(number):
        return Score("mean", np.array([[1.0]] * number + [[0.0]] * (100 - number)))

    assert is_at_chance(hits(10), 100)
    assert is_at_chance(hits(18), 100)
    assert not is_at_chance(hits(19), 100)
    assert is_at_chance(hits(100), 8), "all documents stand among the first ten"


def test_a_real_encoder_runs_through_all_tasks(tmp_path):
    encoder = Encoder.load(build_model_folder("bert", Path(tmp_path) / "model"))
    tasks = panel(SENTENCES)
    for task, scores in zip(tasks, score_tasks(encoder, tasks), strict=True):
        assert 0 <= scores[task.main].value <= 100
        assert len(scores[task.main].items) == task.settings.items
