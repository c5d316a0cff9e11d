"""Measures that need queries: fused rankings, written queries and a cross-encoder's view, by hand."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.panel_candidates import (
    CROSS,
    FUSED_SENTENCES,
    FUSED_WRITTEN,
    WRITTEN,
    Asked,
    Preferences,
    asked_of,
    candidates,
    fuse,
    ndcg,
    rank,
    with_combinations,
)

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


def test_the_cross_encoder_is_asked_only_where_first_results_differ(tmp_path):
    scored = []

    def score(pairs):
        scored.extend(pairs)
        return np.array([float(len(text)) for _, text in pairs])

    preferences = Preferences(SimpleNamespace(score=score), tmp_path / "kept.json")
    rankings = {"base": [[0, 1], [1, 2]], "other": [[0, 1], [2, 1]], "third": [[1, 0], [2, 1]]}
    found = candidates(rankings, ASKED, preferences)
    assert found["base"][CROSS].tolist() == [0, 0]
    assert found["other"][CROSS].tolist() == [0, -1], "blue is shorter than green"
    assert found["third"][CROSS].tolist() == [1, -1]
    assert len(scored) == len(set(scored)) == 4
    assert len(json.loads((tmp_path / "kept.json").read_text("utf-8"))) == 4
    assert found["third"][WRITTEN].tolist() == [0.5]
    assert found["base"][FUSED_WRITTEN].shape == found["base"][FUSED_SENTENCES].shape == (1,)


def test_without_a_writer_there_are_only_sentences(tmp_path):
    asked = asked_of(["one", "two"], ["two", "three", "four"], 3, None, tmp_path, 5)
    assert (asked.corpus, asked.written, asked.sentences) == (["one", "two", "three"], [], ["one", "two"])
    assert set(candidates({"base": [[1], [0]]}, asked, None)["base"]) == {FUSED_SENTENCES}


def test_combinations_are_mean_ranks_of_the_models_and_need_all_their_parts():
    tables = {
        "base": {"panel": 10.0, FUSED_SENTENCES: 0.2},
        "one": {"panel": 30.0, FUSED_SENTENCES: 0.2},
        "two": {"panel": 20.0, FUSED_SENTENCES: 0.9},
    }
    found = with_combinations(tables)
    assert [one["panel and fused, sentences"] for one in found.values()] == [1.25, 2.25, 2.5]
    assert "all four" not in found["base"]
