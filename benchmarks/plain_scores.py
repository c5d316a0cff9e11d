"""Scores of a model on rows that it never saw, with sentence-transformers' `encode`, numpy and scipy alone.

Each score is a list of values, one per item, so that two models can be compared item by item: for every metric but
Spearman the score is their mean; for Spearman they are cosines, to be correlated with the people's scores.
"""

import numpy as np
from scipy.stats import spearmanr

TOP = 10


def unit(model, texts):
    """Vectors of length 1."""
    return model.encode(list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False)


def pairs(model, train, test):
    """Every question searches the answers of all rows: nDCG@10 and the reciprocal rank, 0 beyond 10."""
    asked, answers = test.columns
    corpus = list(dict.fromkeys([*train[answers], *test[answers]]))
    place = {text: number for number, text in enumerate(corpus)}
    right = {}
    for question, answer in zip(test[asked], test[answers], strict=True):
        right.setdefault(question, set()).add(place[answer])
    best = np.argsort(-(unit(model, right) @ unit(model, corpus).T), axis=1, kind="stable")[:, :TOP]
    hits = [np.isin(some, list(relevant)) for some, relevant in zip(best, right.values(), strict=True)]
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    ideal = [discounts[: len(relevant)].sum() for relevant in right.values()]
    return {
        "nDCG@10": [
            float(discounts[np.flatnonzero(found)].sum() / most) for found, most in zip(hits, ideal, strict=True)
        ],
        "MRR@10": [1 / (1 + int(found.argmax())) if found.any() else 0.0 for found in hits],
    }


def labels(model, train, test):
    """Every text ranks the training texts: whether the nearest has its label, and the average precision."""
    known = np.array(train["label"])
    order = np.argsort(-(unit(model, test["text"]) @ unit(model, train["text"]).T), axis=1, kind="stable")
    hits = known[order] == np.array(test["label"])[:, None]
    hits = hits[hits.any(axis=1)]  # a label that no training row has cannot be found
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    found = {"1-NN": hits[:, 0], "MAP": (precision * hits).sum(axis=1) / hits.sum(axis=1)}
    return {metric: values.astype(float).tolist() for metric, values in found.items()}


def scores(model, train, test):
    """The cosine of every pair."""
    left, right = unit(model, test["sentence1"]), unit(model, test["sentence2"])
    return {"Spearman": (left * right).sum(axis=1).astype(float).tolist()}


def triplets(model, train, test):
    """Whether the positive is nearer than the negative."""
    anchor, positive, negative = (unit(model, test[name]) for name in ("anchor", "positive", "negative"))
    return {"accuracy": ((anchor * positive).sum(axis=1) > (anchor * negative).sum(axis=1)).astype(float).tolist()}


def translations(model, train, test):
    """Whether a sentence finds its translation among those of all test rows, the mean of both directions."""
    cosines = unit(model, test["source"]) @ unit(model, test["target"]).T
    own = np.arange(len(test))
    return {"accuracy": ((cosines.argmax(axis=1) == own) / 2 + (cosines.argmax(axis=0) == own) / 2).tolist()}


KINDS = {"pairs": pairs, "triplets": triplets, "labels": labels, "scores": scores, "translations": translations}


def item_scores(model, train, test):
    """By metric, the values of all items; the first metric is the main one."""
    return KINDS[test.kind](model, train, test)


def item_clusters(train, test):
    """The cluster of each item, in the order of `item_scores`."""
    if test.kind == "pairs":
        asked = test.columns[next(iter(test.columns))]
        return test.clusters[[asked.index(text) for text in dict.fromkeys(asked)]]
    if test.kind == "labels":
        return test.clusters[np.isin(test["label"], train["label"])]
    return test.clusters


def total(metric, values, gold=None):
    """The score of some items, times 100."""
    return 100 * float(spearmanr(values, gold).statistic if metric == "Spearman" else np.mean(values))
