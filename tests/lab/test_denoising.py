"""Denoising: spans become masks, and the whole sentence is the target."""

from itertools import pairwise

import numpy as np

from sentloom.data.batches import Batches
from sentloom.data.shapes import Shape
from sentloom.lab.denoising import Denoising, DenoisingOptions, infilled
from tests.small_data import build_dataset
from tests.writing.small_synthesizers import triplets


def test_spans_become_masks():
    draw = np.random.default_rng(0)
    options = DenoisingOptions(share=0.4)
    masks = []
    for _ in range(300):
        left = infilled(list(range(10, 30)), 2, options, draw)
        kept = [token for token in left if token != 2]
        assert kept == sorted(kept)
        assert all(a != 2 or b != 2 for a, b in pairwise(left))  # one mask a span
        gone = 20 - len(kept)
        assert 1 <= gone <= 8
        masks.append((left.count(2), gone))
    assert 6 < np.mean([gone for _, gone in masks]) <= 8
    assert 2 < np.mean([gone / count for count, gone in masks]) < 4
    assert infilled([7], 2, DenoisingOptions(share=0.0), draw) == [7]
    assert infilled([], 2, options, draw) == []


def test_denoising_reads_what_is_left_and_writes_the_whole(model):
    method = Denoising(model, DenoisingOptions())
    data = build_dataset(Shape.TEXTS, [(row,) for row in triplets().column("anchor").to_pylist()])
    batch = Batches(data, 8, seed=0).batch(0)
    for text, instance in zip(batch.first, method.instances(batch), strict=True):
        assert instance.target == model.target_ids(text)
        assert len(instance.source) <= len(instance.target)
        assert {*instance.source} - {method.mask} <= {*instance.target}
    whole = method.instances(batch)
    assert whole == [instance for at in (0, 3, 6) for instance in method.instances(batch.part(at, min(at + 3, 8)))]
