"""Semantic textual similarity: the correlation of cosines with people's scores, under three aggregations.

`all` joins the sub-sets of a set and takes one correlation (SBERT, SimCSE, Sentence-T5, GenSE); `mean` and `wmean` take
one a sub-set and average them, plainly or weighted by pairs (SentEval; BERT-flow and BERT-whitening report `wmean`).
STS-B and SICK-R are scored whole, by cosine alone: one sub-set, so that the three agree. Scores are times 100.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np

from sentloom.evaluation.metrics import Numbers, cosine_of_pairs, is_constant, pearson, spearman
from sentloom.evaluation.sts_sets import StsSet, StsSuite
from sentloom.evaluation.vectors import Encode, encode_distinct


class Aggregation(StrEnum):
    """How the correlations of a set's sub-sets become one."""

    ALL = "all"
    MEAN = "mean"
    WMEAN = "wmean"


@dataclass(frozen=True)
class Correlation:
    """Spearman's and Pearson's, times 100."""

    spearman: float
    pearson: float


@dataclass(frozen=True)
class SubsetScore:
    """The correlation within one sub-set."""

    pairs: int
    correlation: Correlation


@dataclass(frozen=True)
class SetScore:
    """The scores of one set. `mean` and `wmean` are absent where its sub-sets are not known."""

    name: str
    pairs: int
    scores: Mapping[Aggregation, Correlation]
    subsets: Mapping[str, SubsetScore]
    source: str
    sha256: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Average:
    """The plain mean over the sets that have a score; `label` says how many those are."""

    correlation: Correlation
    sets: int
    of: int

    @property
    def label(self) -> str:
        """For a table's head: "mean of 7 sets", "mean of 5 of 7 sets"."""
        return f"mean of {self.sets} sets" if self.sets == self.of else f"mean of {self.sets} of {self.of} sets"


@dataclass(frozen=True)
class StsResult:
    """What a suite gave."""

    sets: tuple[SetScore, ...]
    missing: tuple[str, ...]

    def average(self, aggregation: Aggregation = Aggregation.ALL) -> Average | None:
        """The mean over the sets that have this aggregation; None if none has."""
        found = [one.scores[aggregation] for one in self.sets if aggregation in one.scores]
        return Average(_mean(found), len(found), len(self.sets) + len(self.missing)) if found else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything that a reader of the scores must know."""
        absent = tuple(f"{name}: missing, left out of the average" for name in self.missing)
        return tuple(f"{one.name}: {note}" for one in self.sets for note in one.notes) + absent

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, scores unrounded."""
        averages = {aggregation: self.average(aggregation) for aggregation in Aggregation}
        return {
            "sets": [asdict(one) for one in self.sets],
            "missing": list(self.missing),
            "average": {
                name: {**asdict(average.correlation), "label": average.label} if average else None
                for name, average in averages.items()
            },
            "notes": list(self.notes),
        }


def evaluate_sts(encode: Encode, suite: StsSuite) -> StsResult:
    """Score an encoder on the sets of a suite; each distinct sentence of the whole suite is encoded once."""
    sides = [side for one in suite.sets for side in (one.sentences1, one.sentences2)]
    vectors = encode_distinct(encode, chain.from_iterable(sides))
    scored = []
    for one in suite.sets:
        left, right = (np.stack([vectors[text] for text in side]) for side in (one.sentences1, one.sentences2))
        scored.append(score_set(one, cosine_of_pairs(left, right)))
    return StsResult(tuple(scored), suite.missing)


def score_set(one: StsSet, cosines: Numbers) -> SetScore:
    """The scores of one set, given the cosine of each of its pairs."""
    scores = {Aggregation.ALL: _correlation(cosines, one.gold)}
    subsets, notes = {}, list(one.notes)
    if one.subsets is None:
        notes.append("sub-sets unknown, so mean and wmean are absent")
    else:
        subsets = _score_subsets(one, cosines)
        parts, pairs = [part.correlation for part in subsets.values()], [part.pairs for part in subsets.values()]
        scores |= {Aggregation.MEAN: _mean(parts), Aggregation.WMEAN: _mean(parts, pairs)}
    if is_constant(cosines):
        notes.append("all cosines are equal, which scores 0")
    return SetScore(one.name, len(one.gold), scores, subsets, one.source, one.sha256, tuple(notes))


def _score_subsets(one: StsSet, cosines: Numbers) -> dict[str, SubsetScore]:
    """Each sub-set by itself, in the order of their first pairs."""
    names = np.array(one.subsets)
    masks = {name: names == name for name in dict.fromkeys(one.subsets or ())}
    return {
        name: SubsetScore(int(mask.sum()), _correlation(cosines[mask], one.gold[mask])) for name, mask in masks.items()
    }


def _correlation(cosines: Numbers, gold: Numbers) -> Correlation:
    return Correlation(100 * spearman(cosines, gold), 100 * pearson(cosines, gold))


def _mean(parts: Sequence[Correlation], weights: Sequence[int] | None = None) -> Correlation:
    values = np.average([(part.spearman, part.pearson) for part in parts], axis=0, weights=weights)
    return Correlation(float(values[0]), float(values[1]))
