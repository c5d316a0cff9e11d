"""Classifying: a classifier for every input with labels, on the vectors of the winner or of the base.

It is chosen on validation rows or folds, proven on test rows, and then learns from all rows. With few rows per label no
row is held out (`split`): it is proven by the folds, whose models have not seen what they are asked.

The winner's vectors are used if the gate accepts it. Otherwise they are used if classifiers on them are shown to be
better than the best ones on the base, by what proves. If they are not, the base itself is the product, with a
classifier.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from sentloom.classify.classifier import Classifier, have_several, marks_of, split_labels
from sentloom.classify.heads import Rows
from sentloom.classify.learning import Learned, Numbers, Outcome, Trial, choose, hits, learn_from, outcome_of
from sentloom.classify.proving import Places, described, prove, score_of, unknown_labels
from sentloom.classify.suspects import find_suspects
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.significance import are_enough, compare_averages, corrected_level
from sentloom.evaluation.task import CLUSTER
from sentloom.fitting.examples import shortened
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.plan import Job
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import ClassifierSummary, Mistake, Suspect, chosen_on
from sentloom.fitting.split import Split
from sentloom.fitting.verify import Duel, Proof
from sentloom.search.vectors import normalised

TEST_ROWS = "the test rows"
MOST_SHOWN = 20  # mistakes and suspects
MOST_LABELS_SUSPECTED = 300  # labels, beyond which looking for wrong ones takes minutes


@dataclass(frozen=True)
class Classified:
    """The classifiers to save, what is known about them, and whether they need the vectors of the fitted encoder."""

    classifiers: tuple[Classifier, ...]
    summaries: tuple[ClassifierSummary, ...]
    fitted: bool


@dataclass(frozen=True)
class _Input:
    """An input with labels, and how its rows are divided."""

    source: FitInput
    split: Split
    folds: tuple[Split, ...]  # if it is chosen by cross-validation
    labels: tuple[str, ...]
    several: bool
    memory: Memory

    @property
    def asked(self) -> tuple[Dataset, ...]:
        """The rows that prove: test rows, or else those of all folds."""
        return (self.split.test,) if len(self.split.test) else tuple(fold.validation for fold in self.folds)

    @property
    def clusters(self) -> Places:
        """The clusters of the rows that prove."""
        return np.concatenate([np.array(data[CLUSTER], np.int64) for data in self.asked])

    def rows(self, encoder: Encoder, data: Dataset) -> Rows:
        """Some of its rows as an encoder sees them."""
        vectors = vectors_of(encoder, data["text"], "symmetric", self.memory)
        named = [split_labels(label, self.several) for label in data["label"]]
        return Rows(normalised(vectors), marks_of(named, self.labels))

    def trial(self, encoder: Encoder, learned: Dataset, asked: Dataset) -> Trial:
        """Rows to learn from, and others to score."""
        return Trial(self.rows(encoder, learned), self.rows(encoder, asked))


@dataclass(frozen=True)
class _Tried:
    """What was chosen on the vectors of an encoder, and what it says about the rows that prove."""

    learned: Learned
    trials: tuple[Trial, ...]
    outcome: Outcome
    right: Numbers


def classify(job: Job, prepared: Prepared, duel: Duel, proof: Proof) -> Classified | None:
    """Classifiers for all inputs with labels; None if there are none."""
    inputs = tuple(_labelled(prepared, job.memory))
    if not inputs:
        return None
    job.log("\nFitting the classifier ...")
    fitted = [_try(own, duel.after, duel.folds) for own in inputs]
    base = [_try(own, duel.base, [duel.base] * len(own.folds)) for own in inputs]
    after, before = (
        [score_of(tried.right, own.clusters) for tried, own in zip(side, inputs, strict=True)]
        for side in (fitted, base)
    )
    gain = compare_averages(after, before, level=corrected_level(proof.uses.number))
    use = proof.gate.passed or job.request.force or (gain.low > 0 and are_enough(gain.effective))
    chosen, encoder = (fitted, duel.after) if use else (base, duel.base)
    classifiers = tuple(_final(own, tried.learned, encoder) for own, tried in zip(inputs, chosen, strict=True))
    summaries = tuple(
        replace(
            _summary(own, tried, classifier, duel.base),
            fitted=use,
            gain=gain.difference,
            gain_low=gain.low,
            gain_high=gain.high,
        )
        for own, tried, classifier in zip(inputs, chosen, classifiers, strict=True)
    )
    for summary in summaries:
        job.log(f"{summary.name}: {summary.head}, {summary.proof.agreement.value:.1f}% right on {summary.proven_on}")
    return Classified(classifiers, summaries, use)


def _labelled(prepared: Prepared, memory: Memory) -> Iterator[_Input]:
    for number, (source, split) in enumerate(zip(prepared.inputs, prepared.splits, strict=True)):
        if source.data.shape is Shape.CLASSIFICATION:
            cells = source.data["label"]
            several = have_several(cells)
            labels = tuple(sorted({label for cell in cells for label in split_labels(cell, several)}))
            folds = tuple(fold.splits[number] for fold in prepared.folds)
            yield _Input(source, split, folds, labels, several, memory)


def _try(own: _Input, encoder: Encoder, folds: Sequence[Encoder]) -> _Tried:
    """Choose a classifier on the vectors of an encoder, and ask it about the rows that prove."""
    if own.folds:
        both = zip(folds, own.folds, strict=True)
        trials = [own.trial(model, fold.train, fold.validation) for model, fold in both if len(fold.validation)]
    else:
        trials = [own.trial(encoder, own.split.train, own.split.validation)]
    learned = choose(trials, own.several)
    if not len(own.split.test):
        return _Tried(
            learned, tuple(trials), learned.outcome, hits(learned.outcome, learned.choice.calibration, own.several)
        )
    trials = [own.trial(encoder, own.split.train, own.split.test)]
    outcome = outcome_of(learned.choice.settings, trials, own.several)
    return _Tried(learned, tuple(trials), outcome, hits(outcome, learned.choice.calibration, own.several))


def _final(own: _Input, learned: Learned, encoder: Encoder) -> Classifier:
    """The classifier that is used: it learns from all rows."""
    head, rows = learn_from(learned.choice.settings, own.rows(encoder, own.source.data), own.several)
    column = own.source.label_column or own.source.data.own_name("label")
    names = column, own.source.data.own_name("text")
    return Classifier(*names, own.labels, own.several, learned.choice, head, rows)


def _summary(own: _Input, tried: _Tried, classifier: Classifier, base: Encoder) -> ClassifierSummary:
    learned = tried.learned
    suspects, share = _suspects(own, base)
    return ClassifierSummary(
        name=own.source.name,
        column=classifier.column,
        head=described(learned.choice.settings, len(own.labels), own.several),
        labels=own.labels,
        several=own.several,
        fitted=True,
        proven_on=TEST_ROWS if len(own.split.test) else chosen_on(len(own.folds)),
        rows=len(own.source.data),
        probability=learned.choice.abstention.probability,
        cosine=learned.choice.abstention.cosine,
        proof=prove(tried.outcome, learned.choice, own.labels, own.several, own.clusters),
        unknown=unknown_labels(tried.trials, learned.choice, own.several),
        mistakes=_mistakes(own, tried),
        suspects=suspects,
        suspect_share=share,
    )


def _mistakes(own: _Input, tried: _Tried) -> tuple[Mistake, ...]:
    """The rows that prove which it is surest about, and wrong."""
    probabilities = tried.learned.choice.calibration.probabilities(tried.outcome.scores, own.several)
    texts, labels = ([*chain(*(data[name] for data in own.asked))] for name in ("text", "label"))
    given, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    wrong = np.flatnonzero(~tried.outcome.marks[np.arange(len(given)), given])
    shown = wrong[np.argsort(-sure[wrong], kind="stable")][:MOST_SHOWN]
    return tuple(Mistake(shortened(texts[at]), labels[at], own.labels[given[at]], float(sure[at])) for at in shown)


def _suspects(own: _Input, base: Encoder) -> tuple[tuple[Suspect, ...], float]:
    """Rows whose label is probably wrong, as the base sees them, and their share."""
    if own.several or len(own.labels) > MOST_LABELS_SUSPECTED:
        return (), 0.0
    data = own.source.data
    suspects = find_suspects(own.rows(base, data))
    texts, labels = data["text"], data["label"]
    shown = tuple(
        Suspect(data.place(int(row)), shortened(texts[row]), labels[row], own.labels[label], float(probability))
        for row, label, probability in zip(suspects.rows, suspects.labels, suspects.probabilities, strict=True)
    )[:MOST_SHOWN]
    return shown, suspects.share
