"""Vectors for hand computations, and the lines of data files."""

from functools import cache

import numpy as np


def at_angles(**degrees):
    """Return a lookup of vectors in the plane: the cosine of two texts is that of the difference of their angles."""
    turned = {text.replace("_", " "): np.deg2rad(angle) for text, angle in degrees.items()}

    def lookup(texts, role="symmetric"):
        return np.array([[np.cos(turned[text]), np.sin(turned[text])] for text in texts], np.float32)

    return lookup


def any_vectors(texts, role="symmetric"):
    """Return a lookup of a fixed random vector for each text."""
    return np.stack([_vector(text) for text in texts])


@cache
def _vector(text):
    return np.random.default_rng(list(text.encode())).normal(size=8).astype(np.float32)


def all_alike(texts, role="symmetric"):
    """Look up the same vector for every text."""
    return np.ones((len(texts), 4), np.float32)


def values(task, lookup):
    """Compute the value of each score."""
    return {name: score.value for name, score in task.score(lookup).items()}


def write(file, *lines):
    """Write a file of tab-separated lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")


def scored(pairs):
    """Build lines of scored pairs with a header."""
    return [("score", "sentence1", "sentence2"), *((row % 6, f"left {row}", f"right {row}") for row in range(pairs))]
