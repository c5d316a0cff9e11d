"""Labelled texts: whether the nearest labelled neighbour has the same label, and whether a probe predicts it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.pairs import clusters_of
from sentloom.evaluation.retrieval import TIE
from sentloom.evaluation.set_source import Rows, joint_sha256
from sentloom.evaluation.task import Kind, Lookup, Score, Scores, Task, TaskSettings
from sentloom.search.nearest import BLOCKS
from sentloom.search.vectors import normalised

if TYPE_CHECKING:
    from sentloom.evaluation.probes.protocols import Probe

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
PROBED = 2_000  # known rows that a probe sees at most: more change its accuracy little, and take minutes
MOST_LABELS = 500  # of a probe, for the same reason
SEED = 0


def classification_task(name: str, rows: Rows, probe: Mapping[str, Any]) -> Task:
    """Build the task of finding the label of each text by a probe, cross-validated on the rows themselves."""
    _refuse_one_label(rows)

    def score(lookup: Lookup) -> Scores:
        from sentloom.evaluation.probes.protocols import cross_validated

        items = cross_validated(lookup(rows["text"]), rows["label"], _options(probe))
        return {"accuracy": Score("accuracy", items, clusters=clusters_of(rows))}

    settings = TaskSettings(Kind.CLASSIFICATION, probe=asdict(_options(probe)))
    items = tuple(_items(rows))
    return Task(name, "accuracy", {"symmetric": rows["text"]}, score, rows.source, rows.sha256, settings, items=items)


def neighbour_task(name: str, rows: Rows, known: Rows) -> Task:
    """Build the task of finding the label of each text among `known` rows, which have labels too.

    `accuracy` is how often the nearest neighbour of a text has its label, and `map` how high all rows with its label
    rank; ties count against the system. Texts whose label no known row has are left out.
    """
    _refuse_one_label(rows)
    items = tuple(item for item, asked in zip(_items(rows), _answerable(rows, known), strict=True) if asked)
    return Task(
        name,
        "accuracy",
        {"symmetric": [*rows["text"], *known["text"]]},
        lambda lookup: neighbour_scores(lookup, rows, known),
        rows.source,
        joint_sha256(rows, known),
        TaskSettings(Kind.NEIGHBOURS),
        items=items,
        known=known,
    )


def probe_task(name: str, rows: Rows, known: Rows, probe: Mapping[str, Any]) -> Task | None:
    """Build the task of finding the label of each text by a probe that is trained on `known` rows, at most `PROBED`.

    Its weight decay is chosen on a fifth of them. The first row of every label is trained on. There is no such task if
    no row is left to choose on, or for more than `MOST_LABELS` labels.
    """
    labels = len(set(known["label"]))
    trained, chosen_on = _divided(known["label"])
    if not _answerable(rows, known).any() or not len(chosen_on) or not 2 <= labels <= MOST_LABELS:
        return None
    settings = TaskSettings(Kind.PROBE, probe=asdict(_options(probe)), trained=len(trained), labels=labels)
    return Task(
        name,
        "probe",
        {"symmetric": [*rows["text"], *known["text"]]},
        lambda lookup: _probed(lookup, rows, known, probe),
        rows.source,
        joint_sha256(rows, known),
        settings,
    )


def _refuse_one_label(rows: Rows) -> None:
    if len(set(rows["label"])) < 2:
        problem = f"the only label is {rows['label'][0]!r}"
        raise InputError(rows.source, problem, "two labels or more", "label the rows")


def _items(rows: Rows) -> Iterator[tuple[str, str]]:
    return ((text, str(label)) for text, label in zip(rows["text"], rows["label"], strict=True))


def _answerable(rows: Rows, known: Rows) -> Mask:
    """Which rows have a label that a known row has."""
    return np.isin(rows["label"], known["label"])


def _options(probe: Mapping[str, Any]) -> "Probe":
    from sentloom.evaluation.probes.protocols import Probe

    return Probe(**probe)


def _probed(lookup: Lookup, rows: Rows, known: Rows, probe: Mapping[str, Any]) -> Scores:
    from sentloom.evaluation.probes.protocols import train_and_test

    asked = _answerable(rows, known)
    trained, chosen_on = _divided(known["label"])
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
    asked = _answerable(rows, known)
    labels, others = np.array(rows["label"], object)[asked], np.array(known["label"], object)
    vectors = normalised(lookup(rows["text"])[asked]), normalised(lookup(known["text"]))
    nearest, precision = _ranked(*vectors, labels, others)
    clusters = clusters_of(rows)
    clusters = clusters[asked] if clusters is not None else None
    values_of = {"accuracy": nearest, "map": precision}
    return {metric: Score("mean", values[:, None], clusters=clusters) for metric, values in values_of.items()}


def _ranked(
    queries: npt.NDArray[Any], known: npt.NDArray[Any], labels: npt.NDArray[Any], others: npt.NDArray[Any]
) -> tuple[Numbers, Numbers]:
    """For each query whether its nearest row has its label, and the average precision of those that have it."""
    nearest, precision = np.empty(len(queries)), np.empty(len(queries))
    for start in range(0, len(queries), BLOCKS[0]):
        block = slice(start, start + BLOCKS[0])
        right: Mask = labels[block, None] == others[None, :]
        order = np.argsort(-(queries[block] @ known.T - TIE * right), axis=1, kind="stable")
        hits = np.take_along_axis(right, order, axis=1)
        nearest[block] = hits[:, 0]
        precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        precision[block] = (precisions * hits).sum(axis=1) / hits.sum(axis=1)
    return nearest, precision
