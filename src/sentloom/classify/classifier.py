"""The classifiers in a model folder: what `predict` runs.

classifier.json         labels, settings and thresholds, in the order of the label columns
classifier.safetensors  heads, and the rows that they learned from as vectors, to which later examples are added

sentence-transformers does not read them, and loads the encoder as before.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sentloom.classify.heads import Head, Kind, Linear, Marks, Neighbours, Rows, Settings
from sentloom.classify.learning import Abstention, Calibration, Choice, confidence, decide, learn_from, nearest_cosines
from sentloom.errors import InputError, ModelError
from sentloom.search.vectors import Vectors, normalised

FACTS, TENSORS = "classifier.json", "classifier.safetensors"
VERSION = 1
SEPARATOR = "|"  # between the labels of a text


@dataclass(frozen=True)
class Prediction:
    """The answer for a text: always a label, its probability, and whether to leave the text to people."""

    label: str  # several are joined by |
    probability: float
    abstain: bool


@dataclass(frozen=True)
class Classifier:
    """Labels for vectors of one encoder."""

    column: str  # of the labels, in the data
    text_column: str
    labels: tuple[str, ...]
    several: bool  # whether a text may have any number of labels
    choice: Choice
    head: Head
    rows: Rows  # that it learned from

    def predict(self, vectors: Vectors) -> list[Prediction]:
        """The answer for each vector; one that is zero stands for an empty text, which is left to people."""
        if not len(vectors):
            return []
        unit = normalised(vectors)
        probabilities = self.choice.calibration.probabilities(self.head.scores(unit), self.several)
        given = decide(probabilities, self.several)
        sure = confidence(probabilities, given)
        abstains = self.choice.abstention.abstains(sure, nearest_cosines(Rows(unit, given), self.rows))
        return [
            Prediction(self.joined(marks), round(float(probability), 4), bool(abstain))
            for marks, probability, abstain in zip(given, sure, abstains, strict=True)
        ]

    def joined(self, marks: Marks) -> str:
        """The labels of one text."""
        return SEPARATOR.join(self.labels[at] for at in np.flatnonzero(marks))

    def with_examples(self, vectors: Vectors, labels: Sequence[str]) -> "Classifier":
        """The classifier after it has learned from more rows, whose labels may be new."""
        named = [split_labels(label, self.several) for label in labels]
        every = tuple(dict.fromkeys([*self.labels, *(label for own in named for label in own)]))
        wide = np.zeros((len(self.rows), len(every)), bool)
        wide[:, : len(self.labels)] = self.rows.marks
        rows = Rows(np.concatenate([self.rows.vectors, normalised(vectors)]), np.vstack([wide, marks_of(named, every)]))
        head, kept = learn_from(self.choice.settings, rows, self.several)
        return replace(self, labels=every, head=head, rows=kept)


def split_labels(label: str, several: bool) -> tuple[str, ...]:
    """The labels in a cell.

    >>> split_labels("refund | delay", several=True), split_labels("refund | delay", several=False)
    (('refund', 'delay'), ('refund | delay',))
    """
    if not several:
        return (label,)
    return tuple(dict.fromkeys(part for part in map(str.strip, label.split(SEPARATOR)) if part))


def have_several(labels: Sequence[str]) -> bool:
    """Whether cells have several labels: one of them is divided into labels, some of which other cells have too."""
    parts = [split_labels(label, several=True) for label in labels]
    alone = {label for label in labels if SEPARATOR not in label}
    joined = [own for own in parts if len(own) > 1]
    return bool(joined) and (not alone or any(set(own) & alone for own in joined))


def marks_of(labels: Sequence[Sequence[str]], every: Sequence[str]) -> Marks:
    """Which of all labels each text has."""
    places = {label: at for at, label in enumerate(every)}
    marks = np.zeros((len(labels), len(every)), bool)
    for row, own in enumerate(labels):
        for label in own:
            marks[row, places[label]] = True
    return marks


def save(classifiers: Sequence[Classifier], folder: Path) -> None:
    """Write classifiers into a model folder that is being made; without any, nothing."""
    if not classifiers:
        return
    facts = [
        {
            "column": own.column,
            "text_column": own.text_column,
            "labels": own.labels,
            "several": own.several,
            **asdict(own.choice),
        }
        for own in classifiers
    ]
    tensors = {f"{at}.{name}": values for at, own in enumerate(classifiers) for name, values in _tensors(own).items()}
    save_file(tensors, folder / TENSORS)
    text = json.dumps({"version": VERSION, "classifiers": facts}, indent=1, ensure_ascii=False)
    (folder / FACTS).write_text(text + "\n", "utf-8")


def _tensors(classifier: Classifier) -> dict[str, np.ndarray[Any, Any]]:
    rows = classifier.rows
    tensors: dict[str, np.ndarray[Any, Any]] = {
        "vectors": rows.vectors.astype(np.float16),
        "marks": np.packbits(rows.marks, axis=1),
    }
    if isinstance(classifier.head, Linear):
        tensors |= {"weight": classifier.head.weight, "bias": classifier.head.bias}
    return {name: np.ascontiguousarray(values) for name, values in tensors.items()}


def has_classifiers(folder: Path) -> bool:
    """Whether a folder has classifiers."""
    return (folder / FACTS).is_file()


def load(folder: Path, dimension: int | None = None) -> tuple[Classifier, ...]:
    """The classifiers in a model folder, whose vectors have so many dimensions, if that is known yet."""
    if not has_classifiers(folder):
        fix = "fit a model to texts with labels: sentloom fit tickets.csv -o MODEL"
        raise InputError(str(folder), "the model has no classifier", "a model that was fitted to labelled texts", fix)
    try:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        if facts["version"] != VERSION:
            raise ModelError(str(folder), "its classifier is from a newer sentloom", "", "update sentloom")
        tensors = load_file(folder / TENSORS)
        classifiers = tuple(_read(own, tensors, at) for at, own in enumerate(facts["classifiers"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, SafetensorError) as error:
        raise ModelError(
            str(folder / FACTS), f"the classifier is damaged: {error}", "", "fit the model again"
        ) from None
    for own in classifiers:
        if dimension is not None and own.rows.vectors.shape[1] != dimension:
            problem = (
                f"its vectors have {dimension:,} dimensions, and the classifier needs {own.rows.vectors.shape[1]:,}"
            )
            raise ModelError(str(folder), problem, "the encoder that the classifier was fitted with", "fit again")
    return classifiers


def _read(facts: Mapping[str, Any], tensors: Mapping[str, np.ndarray[Any, Any]], at: int) -> Classifier:
    labels, several = tuple(map(str, facts["labels"])), bool(facts["several"])
    settings = Settings(Kind(facts["settings"]["kind"]), float(facts["settings"]["strength"]))
    marks = np.unpackbits(tensors[f"{at}.marks"], axis=1, count=len(labels)).astype(bool)
    rows = Rows(normalised(tensors[f"{at}.vectors"].astype(np.float32)), marks)
    if len(rows.vectors) != len(rows.marks):
        raise ValueError("as many rows of vectors as of labels are expected")
    head: Head = (
        Neighbours(rows, int(settings.strength), several)
        if settings.kind is Kind.NEIGHBOURS
        else _linear(tensors[f"{at}.weight"], tensors[f"{at}.bias"], rows)
    )
    choice = Choice(settings, Calibration(**facts["calibration"]), Abstention(**facts["abstention"]))
    columns = str(facts["column"]), str(facts["text_column"])
    return Classifier(*columns, labels, several, choice, head, rows)


def _linear(weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any], rows: Rows) -> Linear:
    if weight.shape != (rows.vectors.shape[1], rows.marks.shape[1]) or bias.shape != weight.shape[1:]:
        raise ValueError("the weights do not fit the labels")
    return Linear(weight.astype(np.float32), bias.astype(np.float32))
