"""Labelled texts: whether the nearest labelled neighbour has the same label, and whether a probe predicts it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.retrieval import TIE
from sentloom.evaluation.suites.pairs import clusters_of
from sentloom.evaluation.suites.set_source import Rows, joint_sha256
from sentloom.evaluation.task import Lookup, Score, Scores, Task
from sentloom.search.nearest import BLOCKS
from sentloom.search.vectors import normalised

if TYPE_CHECKING:
    from sentloom.evaluation.probes.protocols import Probe

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
PROBED = 2_000  # known rows that a probe sees at most: more change its accuracy little, and take minutes
MOST_LABELS = 500  # of a probe, for the same reason
SEED = 0


def classification_task(name: str, rows: Rows, probe: Mapping[str, Any] | None, known: Rows | None = None) -> Task:
    """Build the task of finding the label of each text.

    With `known` rows, which have labels too, a text is compared with them: `accuracy` is how often its nearest
    neighbour has its label, and `map` how high all rows with its label rank; ties count against the system. Texts whose
    label no known row has are left out. `probe` is a classifier trained on the known rows; None: there is none. Without
    known rows, it is cross-validated on the rows themselves and is the only score, under the name `accuracy`.
    """
    texts, labels = rows["text"], rows["label"]
    if len(set(labels)) < 2:
        raise InputError(rows.source, f"the only label is {labels[0]!r}", "two labels or more", "label the rows")

    def score(lookup: Lookup) -> Scores:
        if known is None:
            return {"accuracy": _cross_validated(lookup, rows, probe or {})}
        probe_scores = {} if probe is None else probe_score(lookup, rows, known, probe)
        return {**neighbour_scores(lookup, rows, known), **probe_scores}

    settings = {"task": "neighbours" if known else "classification", "probe": probe and asdict(_options(probe))}
    answerable = np.isin(labels, known["label"]) if known else np.ones(len(rows), bool)
    items = [(text, str(label)) for text, label, asked in zip(texts, labels, answerable, strict=True) if asked]
    needed, content = [*texts, *(known["text"] if known else ())], joint_sha256(rows, known)
    return Task(name, "accuracy", {"symmetric": needed}, score, rows.source, content, settings, items=tuple(items))


def _options(probe: Mapping[str, Any]) -> "Probe":
    from sentloom.evaluation.probes.protocols import Probe

    return Probe(**probe)


def _cross_validated(lookup: Lookup, rows: Rows, probe: Mapping[str, Any]) -> Score:
    from sentloom.evaluation.probes.protocols import cross_validated

    items = cross_validated(lookup(rows["text"]), rows["label"], _options(probe))
    return Score("accuracy", items, clusters=clusters_of(rows))


def probe_score(lookup: Lookup, rows: Rows, known: Rows, probe: Mapping[str, Any]) -> Scores:
    """A probe trained on known rows, at most `PROBED`, whose weight decay is chosen on a fifth of them.

    The first row of every label is trained on. There is no score if no row is left to choose on, or for more than
    `MOST_LABELS` labels.
    """
    from sentloom.evaluation.probes.protocols import train_and_test

    asked = np.isin(rows["label"], known["label"])
    trained, chosen_on = _divided(known["label"])
    if not asked.any() or not len(chosen_on) or not 2 <= len(set(known["label"])) <= MOST_LABELS:
        return {}
    labels, vectors = np.array(known["label"], object), lookup(known["text"])
    dev = vectors[chosen_on], labels[chosen_on]
    test = lookup(rows["text"])[asked], np.array(rows["label"], object)[asked]
    items = train_and_test(vectors[trained], labels[trained], *test, _options(probe), dev)
    clusters = clusters_of(rows)
    return {"probe": Score("accuracy", items, clusters=None if clusters is None else clusters[asked])}


def _divided(labels: Sequence[Any], most: int = PROBED) -> tuple[Places, Places]:
    """The rows that a probe learns from, and those that choose its weight decay."""
    first = np.unique(np.array([str(label) for label in labels]), return_index=True)[1]
    others = np.setdiff1d(np.random.default_rng(SEED).permutation(len(labels)), first, assume_unique=True)
    others = others[: max(0, most - len(first))]
    chosen_on = others[: len(others) // 5]
    return np.sort(np.concatenate([first, others[len(chosen_on) :]])), np.sort(chosen_on)


def neighbour_scores(lookup: Lookup, rows: Rows, known: Rows) -> Scores:
    """The scores of the texts whose label some known row has."""
    asked = np.isin(rows["label"], known["label"])
    labels, others = np.array(rows["label"], object)[asked], np.array(known["label"], object)
    vectors = normalised(lookup(rows["text"])[asked]), normalised(lookup(known["text"]))
    nearest, precision = _ranked(*vectors, labels, others)
    clusters = clusters_of(rows)
    clusters = clusters[asked] if clusters is not None else None
    found = {"accuracy": nearest, "map": precision}
    return {metric: Score("mean", values[:, None], clusters=clusters) for metric, values in found.items()}


def _ranked(
    queries: npt.NDArray[Any], known: npt.NDArray[Any], labels: npt.NDArray[Any], others: npt.NDArray[Any]
) -> tuple[Numbers, Numbers]:
    """For each query whether its nearest row has its label, and the average precision of those that have it."""
    nearest, precision = np.empty(len(queries)), np.empty(len(queries))
    for start in range(0, len(queries), BLOCKS[0]):
        some = slice(start, start + BLOCKS[0])
        right: Mask = labels[some, None] == others[None, :]
        order = np.argsort(-(queries[some] @ known.T - TIE * right), axis=1, kind="stable")
        hits = np.take_along_axis(right, order, axis=1)
        nearest[some] = hits[:, 0]
        found = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        precision[some] = (found * hits).sum(axis=1) / hits.sum(axis=1)
    return nearest, precision
