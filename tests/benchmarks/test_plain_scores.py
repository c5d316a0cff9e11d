"""Scores against values computed by hand, from vectors in the plane."""

import math

import numpy as np
import pytest

from benchmarks.plain_scores import item_clusters, item_scores, total
from benchmarks.real_sets import tabled


class Angles:
    """A model whose vector of a text is the direction, in degrees, at its end."""

    def encode(self, texts, **settings):
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def scored(kind, test, train=None):
    empty = {name: [] for name in test}
    train = tabled(kind, train) if train else tabled(kind, {name: ["far 999"] for name in empty})
    return item_scores(Angles(), train, tabled(kind, test))


def test_pairs_search_the_answers_of_all_rows():
    test = {"question": ["q 0", "q 0", "r 90"], "answer": ["a 1", "b 30", "c 50"]}
    train = {"question": ["x 0"], "answer": ["between 70"]}
    found = scored("pairs", test, train)
    # q 0 ranks a 1, b 30, c 50, between 70; r 90 ranks between 70, c 50
    assert found["nDCG@10"] == pytest.approx([1.0, 1 / math.log2(3)])
    assert found["MRR@10"] == pytest.approx([1.0, 0.5])


def test_an_answer_beyond_the_first_ten_counts_nothing():
    train = {"question": [f"x {n}" for n in range(1, 11)], "answer": [f"y {n}" for n in range(1, 11)]}
    found = scored("pairs", {"question": ["q 0"], "answer": ["right 40"]}, train)
    assert found == {"nDCG@10": [0.0], "MRR@10": [0.0]}


def test_labels_are_found_among_training_texts():
    train = {"text": ["a 0", "b 20", "c 80"], "label": ["cold", "warm", "cold"]}
    test = {"text": ["d 5", "e 19", "f 3"], "label": ["cold", "cold", "unknown"]}
    found = scored("labels", test, train)
    assert found["1-NN"] == [1.0, 0.0], "a label that no training row has is not asked for"
    # d: cold, warm, cold -> (1/1 + 2/3) / 2; e: warm, cold, cold -> (1/2 + 2/3) / 2
    assert found["MAP"] == pytest.approx([5 / 6, 7 / 12])


def test_scored_pairs_triplets_and_translations():
    pairs = {"sentence1": ["a 0", "b 0", "c 0"], "sentence2": ["d 60", "e 10", "f 90"], "score": ["3", "5", "1"]}
    cosines = scored("scores", pairs)["Spearman"]
    assert cosines == pytest.approx([0.5, math.cos(math.radians(10)), 0.0], abs=1e-9)
    assert total("Spearman", cosines, [3, 5, 1]) == pytest.approx(100)
    triplets = {"anchor": ["a 0", "b 0"], "positive": ["c 10", "d 70"], "negative": ["e 20", "f 30"]}
    assert scored("triplets", triplets)["accuracy"] == [1.0, 0.0]
    # forward, all three find their own; backward, the third is nearest to the second source
    both = {"source": ["a 0", "b 50", "c 100"], "target": ["d 10", "e 55", "f 70"]}
    assert scored("translations", both)["accuracy"] == [1.0, 1.0, 0.5]


def test_clusters_are_in_the_order_of_the_items():
    pairs = tabled("pairs", {"question": ["b", "a", "b"], "answer": ["x", "y", "z"]})
    assert item_clusters(pairs, pairs).tolist() == [0, 1]
    labels = tabled("labels", {"text": ["a", "b"], "label": ["new", "old"]})
    known = tabled("labels", {"text": ["c"], "label": ["old"]})
    assert item_clusters(known, labels).tolist() == [1]
