"""Measures that need queries: fused rankings, written queries and a cross-encoder's view, by hand."""

from typing import ClassVar

import numpy as np
import pytest

from benchmarks.panel_candidates import (
    CROSS,
    CROSS_ANYWHERE,
    FUSED_SENTENCES,
    FUSED_WRITTEN,
    WRITTEN,
    Asked,
    asked_of,
    beats,
    candidates,
    fuse,
    ndcg,
    rank,
    with_combinations,
)
from sentloom.evaluation.evaluate import open_memory

AXES = {"red": [1, 0, 0], "green": [0, 1, 0], "blue": [0, 0, 1], "crimson": [0.9, 0.2, 0.1], "RED": [1, 0, 0]}
ASKED = Asked(["red", "green", "blue"], [("crimson", 0)], ["RED"])


class ByTable:
    def encode(self, texts):
        return np.array([AXES[text] for text in texts], np.float32)


def test_a_query_does_not_find_itself():
    assert rank(ByTable(), ASKED) == [[0, 1, 2], [1, 2]]


def test_the_fused_ranking_by_hand():
    """1/61 + 1/62 for a, 1/62 + 1/61 for b, 1/63 + 1/63 for c: ties go to the smaller number."""
    assert fuse([["a", "b", "c"], ["b", "a", "c"]]) == ["a", "b", "c"]
    assert fuse([["a", "b"], ["c", "b"]]) == ["b", "a", "c"], "second twice is better than first once"


def test_ndcg_of_the_best_texts_by_hand():
    """Gains 10 and 9: 10 + 9 / log2(3) is ideal; reversed, 9 + 10 / log2(3)."""
    root = np.log2(3)
    assert ndcg([7, 8], [7, 8]) == pytest.approx(1)
    assert ndcg([8, 7], [7, 8]) == pytest.approx((9 + 10 / root) / (10 + 9 / root))
    assert ndcg([1, 2], [7, 8]) == 0


def by_length(pairs):
    return np.array([float(len(text)) for _, text in pairs])


RANKINGS = {"base": [[0, 1], [1, 2]], "other": [[0, 1], [2, 1]], "third": [[1, 0], [2, 1]]}


def test_the_cross_encoder_is_asked_only_where_first_results_differ():
    scored = []

    def score(pairs):
        scored.extend(pairs)
        return by_length(pairs)

    found = candidates(RANKINGS, list(RANKINGS), ASKED, score, trusted=True)
    assert found["base"][CROSS].tolist() == [0, 0]
    assert found["other"][CROSS].tolist() == [0, -1], "blue is shorter than green"
    assert found["third"][CROSS].tolist() == [1, -1]
    assert scored == [("RED", "blue"), ("RED", "green"), ("crimson", "green"), ("crimson", "red"),
                      ("RED", "blue"), ("RED", "green")]  # fmt: skip
    assert found["third"][WRITTEN].tolist() == [0.5]
    assert found["base"][FUSED_WRITTEN].shape == found["base"][FUSED_SENTENCES].shape == (1,)


def test_a_cross_encoder_that_does_not_beat_the_base_is_kept_apart():
    found = candidates(RANKINGS, list(RANKINGS), ASKED, by_length, trusted=False)
    assert CROSS not in found["third"]
    assert found["third"][CROSS_ANYWHERE].tolist() == [1, -1]


def test_only_the_rankings_of_routes_are_fused():
    found = candidates(RANKINGS, ["base", "other"], ASKED, None, trusted=False)
    assert found["base"][FUSED_WRITTEN].tolist() == [1.0], "both rank red before green"
    assert found["third"][FUSED_WRITTEN].tolist() == pytest.approx([(9 + 10 / np.log2(3)) / (10 + 9 / np.log2(3))])


def test_a_cross_encoder_beats_the_base_by_re_ranking_its_first_results(tmp_path):
    """By equal vectors nothing is found, for ties count against the base; a judge that knows the pairs ranks them first."""
    pairs = [(f"query {n}", f"answer {n}") for n in range(30)]

    class Blind:
        prompts: ClassVar = {}

        def encode(self, texts, **_):
            return np.ones((len(texts), 2), np.float32)

        def fingerprint(self):
            return "blind"

    def knowing(given):
        return np.array([float(a.split()[1] == b.split()[1]) for a, b in given])

    found = beats(Blind(), pairs, knowing, open_memory(tmp_path))
    assert (found.before.value, found.better) == (0, True)
    assert found.after.value == pytest.approx(100 * 10 / 30), "ten of the answers are among the first ten"

    class Perfect(Blind):
        def encode(self, texts, **_):
            return np.eye(30, dtype=np.float32)[[int(text.split()[1]) for text in texts]]

        def fingerprint(self):
            return "perfect"

    assert not beats(Perfect(), pairs, knowing, open_memory(tmp_path)).better


def test_without_a_writer_there_are_only_sentences(tmp_path):
    asked = asked_of(["one", "two"], ["two", "three", "four"], 3, None, tmp_path, 5)
    assert (asked.corpus, asked.written, asked.sentences) == (["one", "two", "three"], [], ["one", "two"])
    assert set(candidates({"base": [[1], [0]]}, ["base"], asked, None, trusted=False)["base"]) == {FUSED_SENTENCES}


def test_a_held_out_sentence_stays_in_the_corpus_if_other_texts_repeat_it(tmp_path):
    asked = asked_of(["One", "two"], ["three", "four", "one"], 3, None, tmp_path, 5)
    assert asked.corpus == ["One", "two", "three"]


def test_combinations_are_mean_ranks_of_the_models_and_need_all_their_parts():
    tables = {
        "base": {"panel": 10.0, FUSED_SENTENCES: 0.2},
        "one": {"panel": 30.0, FUSED_SENTENCES: 0.2},
        "two": {"panel": 20.0, FUSED_SENTENCES: 0.9},
    }
    found = with_combinations(tables)
    assert [one["panel and fused, sentences"] for one in found.values()] == [1.25, 2.25, 2.5]
    assert "all four" not in found["base"]
