"""Sampling hard negatives."""

from collections import Counter

import numpy as np

from sentloom.methods.negatives import sample_negatives, sample_places


def test_all_are_used_if_there_are_few():
    random = np.random.default_rng(0)
    assert sample_negatives(["a", "b"], 2, random) == ["a", "b"]
    assert sample_negatives(["a"], 3, random) == ["a", "", ""]
    assert sample_places(2, 5, random).tolist() == [0, 1]


def test_a_sample_is_even_in_order_and_repeatable():
    texts = ["a", "b", "c"]
    drawn = [tuple(sample_negatives(texts, 2, np.random.default_rng(seed))) for seed in range(300)]
    assert set(drawn) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert min(Counter(drawn).values()) > 60  # of 100 on average
    assert drawn[7] == tuple(texts[place] for place in sample_places(3, 2, np.random.default_rng(7)))
