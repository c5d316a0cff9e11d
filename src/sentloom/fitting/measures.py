"""Scores of the base and the winner, their differences, what test rows can show, and the verdict as one line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from sentloom.evaluation.significance import LEVEL, are_enough

Part = Literal["deciding", "general", "watched"]
Verdict = Literal["better", "closer", "no difference shown", "worse"]  # closer: to its teacher, without labels
NO_DIFFERENCE: Verdict = "no difference shown"
METRIC_NAMES = {
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "spearman": "Spearman",
    "mean": "mean score",
    "overlap": "shared neighbours",
    "probe": "linear probe",
}


class Difference:
    """A difference from the base with its interval."""

    low: float | None
    high: float | None

    @property
    def better(self) -> bool:
        """Whether the whole interval of the difference is above 0."""
        return self.low is not None and self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the difference is below 0."""
        return self.high is not None and self.high < 0

    @property
    def finding(self) -> Verdict:
        """What the interval shows."""
        return "better" if self.better else "worse" if self.worse else NO_DIFFERENCE


@dataclass(frozen=True)
class Measure(Difference):
    """One score of the base (before) and of the winner (after), and their paired difference."""

    name: str
    label: str  # plain words: "a sentence's half finds the other among 812"
    part: Part
    metric: str
    items: int
    before: float
    before_low: float
    before_high: float
    after: float
    after_low: float
    after_high: float
    difference: float
    low: float
    high: float
    p: float
    level: float = LEVEL  # of the interval of the difference; higher where test rows were used before
    clusters: int = 0  # of items that are not independent; intervals are over clusters
    effective: float = 0.0  # Kish's effective number of clusters: how many of equal size would say as much
    documents: int | None = None  # that queries search, for retrieval
    of_documents: int | None = None  # that there are; more than `documents` if these are a sample
    equivalent: bool = False  # whether the difference is shown to be less than EQUIVALENT points
    also: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # other scores of the task: before, after

    @property
    def has_enough_clusters(self) -> bool:
        """Whether the interval can show anything."""
        return are_enough(self.effective)

    @property
    def finding(self) -> Verdict:
        """What the interval shows; nothing with fewer clusters than intervals hold for."""
        return super().finding if self.has_enough_clusters else NO_DIFFERENCE


class Limit(StrEnum):
    """Why test rows can show no gain."""

    CLUSTERS = "too few clusters"
    HIGHEST = "highest score"  # of the base, on every row
    CONSTANT = "constant scores"  # of the base, which say nothing about the spread of a gain
    NOT_HELD_OUT = "no test rows"  # all rows train
    LABELS = "no labels"  # so that only a worse model can be shown


@dataclass(frozen=True)
class Power:
    """What the test rows can show: the smallest gain that is found with this probability."""

    gain: float | None  # points; None: no gain can be shown, or nothing can be said, because of `limit`
    probability: float
    correlation: float  # assumed, of the base and a tuned model over clusters
    clusters: int
    level: float = LEVEL  # of the interval that the verdict will have
    effective: float = 0.0  # number of clusters
    limit: Limit | None = None


def verdict_line(verdict: Verdict, measure: Measure, uses: int) -> str:
    """As in "VERDICT better +4.0 nDCG@10 [1.6, 6.5] level=95% clusters=98 effective=91.4 documents=1456 uses=1"."""
    low, high = (one_decimal(bound) for bound in (measure.low, measure.high))
    gain = f"{measure.difference:+.1f} {metric_name(measure.metric)} [{low}, {high}]"
    counts = f"clusters={measure.clusters} effective={rounded_down(measure.effective)}"
    searched = f" documents={measure.documents}" if measure.documents else ""
    return f"VERDICT {verdict} {gain} level={100 * measure.level:.4g}% {counts}{searched} uses={uses}"


def one_decimal(bound: float) -> str:
    """With one decimal, or with more if it would look like 0: the side of 0 that a bound is on decides the verdict."""
    return f"{bound:.1f}" if abs(bound) >= 0.05 or not bound else f"{bound:.1g}"


def rounded_down(effective: float) -> str:
    """An effective number of clusters with one decimal at most; 19.98 is not 20, from which differences are claimed."""
    return f"{math.floor(10 * effective) / 10:g}"


def metric_name(metric: str) -> str:
    """The name of a metric as people write it."""
    return METRIC_NAMES.get(metric.partition("@")[0], metric.partition("@")[0]) + "".join(metric.partition("@")[1:])
