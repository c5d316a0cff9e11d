"""Sets that are scored with a probe: a small classifier on frozen vectors."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.errors import MissingPart
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, check
from sentloom.evaluation.task import Lookup, Score, Scores, Task, TaskSettings
from sentloom.lab.suites.senteval_folder import read_any
from sentloom.search.vectors import Vectors

if TYPE_CHECKING:
    from sentloom.evaluation.probes.protocols import Probe

SEED = 1111  # SentEval's
FAST_ROWS = 10_000  # training rows of the preset "fast"
TEXT_COLUMNS = ("text", "sentence1", "sentence2")
CLASS_NUMBERS = {  # names of classes on the hub -> their numbers in files
    **dict.fromkeys(("negative", "neg", "unacceptable"), "0"),
    **dict.fromkeys(("positive", "pos", "acceptable"), "1"),
}
Features = Literal["u", "difference-product", "both-difference-product"]


@dataclass(frozen=True)
class ProbedSet:
    """A set, or an edition of one. The probe is trained on `train` and scored on `test`; its L2 is chosen on `dev`, or
    by k-fold on `train` if there is no dev part. Without a test part, `train` is cross-validated.
    """

    name: str
    shape: Shape
    train: SetPart
    test: SetPart | None = None
    dev: SetPart | None = None
    features: Features = "u"
    scores: tuple[str, ...] = ("accuracy",)  # the first is the main one
    limits: tuple[int, int] | None = None  # of the scores, if scores are predicted instead of classes
    note: str = ""  # about an edition that is not the published one

    @property
    def parts(self) -> list[SetPart]:
        """The available parts: train, dev, test."""
        return [part for part in (self.train, self.dev, self.test) if part is not None]


def probed_task(editions: Sequence[ProbedSet], origin: SetSource, most_rows: int | None = None) -> Task:
    """Build the task of the first edition whose parts are all available; at most `most_rows` train the probe."""
    return _task(*read_edition(editions, origin), origin, most_rows)


def read_edition(editions: Sequence[ProbedSet], origin: SetSource) -> tuple[ProbedSet, list[Rows]]:
    """Read the first edition whose parts are all available: the edition, and the rows of its parts."""
    reason = None
    for edition in editions:
        try:
            return edition, [_rows(part, edition, origin) for part in edition.parts]
        except MissingPart as error:
            reason = reason or error
    assert reason is not None, "a set has an edition"
    raise reason


def _rows(part: SetPart, edition: ProbedSet, origin: SetSource) -> Rows:
    """Read a part with texts and label (or score), from a data folder, SentEval's own folder, or the hub."""
    return check(_canonical(read_any(part, origin, edition.shape), edition), part, origin)


def _canonical(rows: Rows, edition: ProbedSet) -> Rows:
    """Convert rows of any shape to text, or sentence1 and sentence2, and label, or score if scores are predicted."""
    columns = dict(rows.columns)
    if "premise" in columns:
        columns |= {"sentence1": columns["premise"], "sentence2": columns["hypothesis"]}
    if edition.limits is None and "label" not in columns:  # labels 0 and 1 that were read as scores
        columns["label"] = [f"{score:g}" for score in columns["score"]]
    gold = "label" if edition.limits is None else "score"
    if gold == "label":
        columns["label"] = [CLASS_NUMBERS.get(label, label) for label in columns["label"]]
    return Rows({name: columns[name] for name in (gold, *TEXT_COLUMNS) if name in columns}, rows.source, rows.notes)


def _task(edition: ProbedSet, rows: Sequence[Rows], origin: SetSource, most_rows: int | None) -> Task:
    from sentloom.evaluation.probes.protocols import Probe

    probe = Probe(**origin.probe)
    limits = [limit for limit in (most_rows, FAST_ROWS if probe.preset == "fast" else None) if limit is not None]
    learned, note = _drawn(rows[0], min(limits)) if limits and edition.test else (rows[0], "")
    parts = [learned, *rows[1:]]
    notes = [*(note for part in rows for note in part.notes), note, edition.note]
    return Task(
        name=edition.name,
        main=edition.scores[0],
        texts={"symmetric": [text for part in parts for side in sides(part) for text in side]},
        score=lambda lookup: _scores(edition, parts, probe, lookup),
        source=", ".join(dict.fromkeys(part.source for part in rows)),
        sha256=hashlib.sha256("\n".join(part.sha256 for part in rows).encode()).hexdigest(),
        settings=TaskSettings(
            others={
                "preset": probe.preset,
                "hidden": probe.hidden,
                **({} if probe.seed == Probe().seed else {"seed": probe.seed}),
                "features": edition.features,
                "protocol": _protocol(edition),
                "train_rows": len(learned),
            }
        ),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _protocol(edition: ProbedSet) -> str:
    if edition.test is None:
        return "nested k-fold"
    return "train, L2 on dev, test" if edition.dev else "train, L2 by k-fold on train, test"


def _drawn(rows: Rows, most: int) -> tuple[Rows, str]:
    """Sample at most `most` rows, in order; also return a note if some were left out."""
    if len(rows) <= most:
        return rows, ""
    chosen = np.sort(np.random.default_rng(SEED).choice(len(rows), most, replace=False))
    columns = {name: [cells[row] for row in chosen] for name, cells in rows.columns.items()}
    note = f"the probe was trained on {most:,} of {len(rows):,} rows, sampled with seed {SEED}"
    return Rows(columns, rows.source), note


def sides(rows: Rows) -> list[Sequence[str]]:
    """The texts of the rows: one column, or two if they are pairs."""
    return [rows[name] for name in TEXT_COLUMNS if name in rows.columns]


def _scores(edition: ProbedSet, parts: Sequence[Rows], probe: "Probe", lookup: Lookup) -> Scores:
    items = _predictions(edition, parts, probe, lookup)
    return {score: Score(score, items) for score in edition.scores}


def _predictions(edition: ProbedSet, parts: Sequence[Rows], probe: "Probe", lookup: Lookup) -> Numbers:
    """Return the predicted and gold value of each scored row (n, 2)."""
    from sentloom.evaluation.probes.protocols import cross_validated, regress, train_and_test

    features = [_features(edition.features, part, lookup) for part in parts]
    gold = [part["label" if edition.limits is None else "score"] for part in parts]
    if edition.test is None:
        return cross_validated(features[0], gold[0], probe)
    if edition.limits is not None:
        return regress(features[0], gold[0], features[-1], gold[-1], probe, edition.limits)
    dev = (features[1], gold[1]) if edition.dev else None
    return train_and_test(features[0], gold[0], features[-1], gold[-1], probe, dev)


def _features(kind: Features, rows: Rows, lookup: Lookup) -> Vectors:
    from sentloom.evaluation.probes.protocols import pair_features

    vectors = [lookup(side) for side in sides(rows)]
    return vectors[0] if kind == "u" else pair_features(vectors[0], vectors[1], kind)
