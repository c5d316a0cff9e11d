"""Labelled texts: whether the nearest labelled neighbour has the same label, and whether a probe predicts it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

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

Mask = npt.NDArray[np.bool_]


def classification_task(name: str, rows: Rows, probe: Mapping[str, Any], known: Rows | None = None) -> Task:
    """Build the task of finding the label of each text.

    With `known` rows, which have labels too, a text is compared with them: `accuracy` is how often its nearest
    neighbour has its label, and `map` how high all rows with its label rank; ties count against the system. Texts whose
    label no known row has are left out. `probe` cross-validates a classifier on the vectors of the rows themselves;
    without known rows it is the only score, under the name `accuracy`. Where no label has rows for all folds, there is
    no `probe`.
    """
    from sentloom.evaluation.probes.protocols import Probe, can_cross_validate, cross_validated

    texts, labels, options = rows["text"], rows["label"], Probe(**probe)
    if len(set(labels)) < 2:
        raise InputError(rows.source, f"the only label is {labels[0]!r}", "two labels or more", "label the rows")

    def probed(lookup: Lookup) -> Score:
        return Score("accuracy", cross_validated(lookup(texts), labels, options), clusters=clusters_of(rows))

    def score(lookup: Lookup) -> Scores:
        if known is None:
            return {"accuracy": probed(lookup)}
        probe_scores = {"probe": probed(lookup)} if can_cross_validate(labels, options) else {}
        return {**neighbour_scores(lookup, rows, known), **probe_scores}

    settings = {"task": "neighbours" if known else "classification", "probe": asdict(options)}
    answerable = np.isin(labels, known["label"]) if known else np.ones(len(rows), bool)
    items = [(text, str(label)) for text, label, asked in zip(texts, labels, answerable, strict=True) if asked]
    needed, content = [*texts, *(known["text"] if known else ())], joint_sha256(rows, known)
    return Task(name, "accuracy", {"symmetric": needed}, score, rows.source, content, settings, items=tuple(items))


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
