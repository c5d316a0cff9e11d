"""The classifiers of a fit in sentences, and as two figures each: what is confused, and what probabilities mean."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sentloom.classify.proving import Reliability
from sentloom.fitting.result import ClassifierSummary
from sentloom.report import formatting
from sentloom.report.plots import COLOURS, FAINT, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LABELS = 30  # in the picture of confusions: those with the most mistakes
MOST_CONFUSED = 10  # pairs in the table
SHORT = 18  # characters of a label in the picture


@dataclass(frozen=True)
class Confused:
    """Texts of a label that got another one."""

    label: str
    given: str
    texts: int


def facts(summary: ClassifierSummary) -> list[str]:
    """What is known about a classifier, one sentence or two each."""
    return [*_scores(summary), *_abstaining(summary), *_probabilities(summary), *_suspects(summary)]


def headline(summary: ClassifierSummary) -> str:
    """Its main score, in a few words."""
    score = summary.proof.agreement
    interval = f"{formatting.number(score.low, 1)} to {formatting.number(score.high, 1)}"
    return f"{_measure(summary)} {formatting.number(score.value, 1)} ({interval}) on {summary.proven_on}"


def _measure(summary: ClassifierSummary) -> str:
    return "F1 of a text" if summary.several else "accuracy"


def _scores(summary: ClassifierSummary) -> Iterator[str]:
    proof, f1 = summary.proof, summary.proof.macro_f1
    vectors = "the fitted encoder" if summary.fitted else "the base, which training did not improve"
    yield f"Chosen: {summary.head}, on the vectors of {vectors}."
    yield (
        f"{headline(summary)[:1].upper()}{headline(summary)[1:]} ({proof.texts:,} texts); macro F1 "
        f"{formatting.number(f1.value, 1)} ({formatting.interval_text(f1.low, f1.high)})."
    )
    gain = f"{formatting.signed(summary.gain)} ({formatting.interval_text(summary.gain_low, summary.gain_high)})"
    yield f"With the fitted encoder instead of the base, the best classifier changes by {gain} points on these rows."
    if "fold" in summary.proven_on:
        yield (
            "No rows were held out from the choice: the folds that measure it have also chosen it, so it looks a "
            "little better than it is."
        )
    yield f"After the proof it learned from all {summary.rows:,} rows."


def _abstaining(summary: ClassifierSummary) -> Iterator[str]:
    answered = summary.proof.abstaining
    wanted = f", where {answered.asked:.0f}% were asked for" if answered.asked else ""
    yield (
        f"It is {answered.right:.0f}% right on the {answered.answered:.0f}% that it answers{wanted}. It abstains below "
        f"a probability of {summary.probability:.2f}, and where no row that it learned from has a cosine of "
        f"{summary.cosine:.2f} or more."
    )
    if unknown := summary.unknown:
        yield (
            f"Texts of labels that were held out from the classifier ({unknown.texts:,}, a quarter of the labels at a "
            f"time): {unknown.left:.0f}% are left to people, while {unknown.known_answered:.0f}% of the others get an "
            f"answer (AUROC {unknown.separation / 100:.2f}). The encoder has seen these labels: it recognises texts of "
            "new ones less often."
        )


def _probabilities(summary: ClassifierSummary) -> Iterator[str]:
    reliability = summary.proof.reliability
    yield (
        f"Probabilities are off by {reliability.error:.1f} points on average (expected calibration error); by "
        f"{reliability.error_before:.1f} before they were calibrated."
    )


def _suspects(summary: ClassifierSummary) -> Iterator[str]:
    if summary.suspect_share:
        yield (
            f"Up to {summary.suspect_share:.1%} of the labels may be wrong: a classifier on the vectors of the base, "
            "which has not learned from these rows, prefers another one."
        )


def confused(summary: ClassifierSummary) -> list[Confused]:
    """The most frequent confusions."""
    if not summary.proof.confusions:
        return []
    counts = np.array(summary.proof.confusions)
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_CONFUSED]
    places = np.column_stack(np.unravel_index(order, counts.shape)).tolist()
    labels = summary.labels
    return [
        Confused(labels[own], labels[other], int(counts[own, other])) for own, other in places if counts[own, other]
    ]


def figures(summary: ClassifierSummary, number: int) -> dict[str, "Figure"]:
    """The figures of one classifier, by name."""
    by_name = {f"reliability-{number}": _reliability_figure(summary.proof.reliability)}
    if summary.proof.confusions:
        by_name[f"confusions-{number}"] = _confusion_figure(summary)
    return by_name


def _reliability_figure(reliability: Reliability) -> "Figure":
    figure, (axes,) = panels(4.4, 3.2, "Probabilities, and how many answers are right")
    axes.plot([0, 100], [0, 100], color=FAINT, lw=1, linestyle="--")
    bins = reliability.bins
    most = max((own.texts for own in bins), default=1)
    sizes = [20 + 120 * own.texts / most for own in bins]
    axes.plot([own.probability for own in bins], [own.right for own in bins], color=COLOURS[0], lw=1.2)
    axes.scatter([own.probability for own in bins], [own.right for own in bins], s=sizes, color=COLOURS[0])
    name_axes(axes, "mean probability, %", "right, %")
    return figure


def _confusion_figure(summary: ClassifierSummary) -> "Figure":
    """Shares of the texts of a label, by the label that they get."""
    counts = np.array(summary.proof.confusions, np.float64)
    wrong = counts.sum(axis=1) + counts.sum(axis=0) - 2 * np.diag(counts)
    shown = np.sort(np.argsort(-wrong, kind="stable")[:MOST_LABELS])
    shares = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[np.ix_(shown, shown)]
    names = [summary.labels[at] for at in shown]
    names = [name if len(name) <= SHORT else f"{name[: SHORT - 1]}…" for name in names]
    left_out = f", the {MOST_LABELS} labels with the most mistakes" if len(shown) < len(counts) else ""
    size = 2.2 + 0.2 * len(shown)
    figure, (axes,) = panels(size + 0.6, size, f"What is confused{left_out}")
    axes.grid(visible=False)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    name_axes(axes, "given", "label")
    return figure
