"""How far a student ranks pairs of texts as its teacher does: a score for raw text, which has no labels."""

import numpy as np
from numpy.typing import NDArray

from sentloom.encoder import Encoder
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.evaluation.suites.pairs import correlation_task
from sentloom.evaluation.suites.set_source import Rows
from sentloom.evaluation.task import Task
from sentloom.search.vectors import Vectors, normalised

NAME = "agreement with the teacher"


def agreement_task(teacher: Encoder, texts: list[str]) -> Task:
    """The rank correlation of a student's cosines with the teacher's, over pairs that share no text.

    The teacher itself scores 100.
    """
    vectors = teacher.encode(texts, show_progress=True)
    left, right = disjoint_pairs(vectors).T
    gold = cosine_of_pairs(vectors[left], vectors[right])
    sides = {name: [texts[place] for place in some] for name, some in (("sentence1", left), ("sentence2", right))}
    return correlation_task(NAME, Rows({**sides, "score": gold.tolist()}, "held-out texts"))


def disjoint_pairs(vectors: Vectors) -> NDArray[np.int64]:
    """Pair up texts by their vectors (n, d) -> (n // 2, 2), each text in one pair, so that pairs are independent.

    A text's partner is drawn from those left, by its rank in similarity, log-uniformly: random pairs alone would be
    unrelated, and nearest ones alone all alike.
    """
    unit, random = normalised(vectors), np.random.default_rng(0)
    left, pairs = np.arange(len(vectors)), []
    while len(left) > 1:
        one, left = left[0], left[1:]
        nearest_first = np.argsort(-(unit[left] @ unit[one]), kind="stable")
        place = nearest_first[int(len(left) ** random.random()) - 1]
        pairs.append((one, left[place]))
        left = np.delete(left, place)
    return np.array(pairs, np.int64).reshape(-1, 2)
