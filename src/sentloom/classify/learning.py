"""Learning: which head, by rows that it has not learned from; calibrated probabilities, and when to abstain.

A trial is some rows to learn from and others to score, with the vectors of an encoder that has not seen the latter:
training and validation rows, or each fold. All choices are made on the scores of these other rows.

A classifier abstains if its probability is low, or if the text is far from everything that it learned from: then it
probably has none of the known labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp, softmax

from sentloom.classify.heads import Head, Kind, Marks, Rows, Scores, Settings, learn
from sentloom.search.nearest import top_k

Numbers = npt.NDArray[np.float64]

CHOICES = (  # the first of equally good ones is taken
    Settings(Kind.LOGISTIC, 10),
    Settings(Kind.LOGISTIC, 1),
    Settings(Kind.LOGISTIC, 100),
    Settings(Kind.PROTOTYPES),
    Settings(Kind.NEIGHBOURS, 5),
    Settings(Kind.NEIGHBOURS, 1),
    Settings(Kind.NEIGHBOURS, 15),
)
MOST_REGRESSED = 300  # labels: a regression of more takes minutes
MOST_TRIED = 5_000  # rows that each choice learns from
MOST_LEARNT = 20_000  # rows that the classifier learns from in the end
ASKED = (0.9, 0.95, 0.99)  # shares of right answers; the first above what is reached without abstaining is aimed at
FEWEST_ANSWERED = 10  # texts that a threshold is chosen by
KNOWN_FAR = 0.02  # of texts with known labels may be taken for unknown, because they are far from all rows
SEED = 0


@dataclass(frozen=True)
class Trial:
    """Rows to learn from, and others to score."""

    learned: Rows
    asked: Rows


@dataclass(frozen=True)
class Calibration:
    """Probabilities from scores: times `scale`, and `shift` added where every label is asked about by itself."""

    scale: float = 1.0
    shift: float = 0.0

    def probabilities(self, scores: Scores, several: bool) -> Numbers:
        """Probabilities (n, l)."""
        scaled = self.scale * scores + (self.shift if several else 0.0)
        values: Numbers = expit(scaled) if several else softmax(scaled, axis=1)
        return values


@dataclass(frozen=True)
class Abstention:
    """Below this probability, or this cosine with the nearest row, a text is left to people."""

    probability: float = 0.0
    cosine: float = -1.0
    asked: float = 0.0  # the share of right answers that the probability was chosen for; 0: none was needed

    def abstains(self, probabilities: Numbers, cosines: Numbers) -> npt.NDArray[np.bool_]:
        """Which texts are left to people."""
        return (probabilities < self.probability) | (cosines < self.cosine)


@dataclass(frozen=True)
class Outcome:
    """What a head said about rows that it has not learned from."""

    scores: Scores  # (n, l)
    marks: Marks  # (n, l): the truth
    cosines: Numbers  # (n,) with the nearest row that it learned from


@dataclass(frozen=True)
class Choice:
    """What is chosen on rows that are not learned from."""

    settings: Settings
    calibration: Calibration = field(default_factory=Calibration)
    abstention: Abstention = field(default_factory=Abstention)


@dataclass(frozen=True)
class Learned:
    """A choice, and what it rests on."""

    choice: Choice
    outcome: Outcome


def choose(trials: Sequence[Trial], several: bool, choices: Sequence[Settings] = CHOICES) -> Learned:
    """The settings with the best answers, and among equals with the best probabilities."""
    trials = [Trial(sampled(trial.learned, MOST_TRIED), trial.asked) for trial in trials]
    if trials[0].learned.marks.shape[1] > MOST_REGRESSED:
        choices = [settings for settings in choices if settings.kind is not Kind.LOGISTIC]
    tried = [(settings, outcome_of(settings, trials, several)) for settings in choices]
    calibrated = [(settings, outcome, calibrate(outcome, several)) for settings, outcome in tried]
    settings, outcome, calibration = max(
        calibrated, key=lambda own: (hits(own[1], own[2], several).mean(), -loss(own[1], own[2], several))
    )
    return Learned(Choice(settings, calibration, abstention_of(outcome, calibration, several)), outcome)


def sampled(rows: Rows, most: int) -> Rows:
    """At most so many rows, with at least one of every label."""
    if len(rows) <= most:
        return rows
    drawn = np.random.default_rng(SEED).permutation(len(rows))
    first = drawn[rows.marks[drawn].argmax(axis=0)[rows.marks.any(axis=0)]]
    kept = np.fromiter(dict.fromkeys([*first.tolist(), *drawn.tolist()]), np.int64)[: max(most, len(set(first)))]
    return rows.where(np.sort(kept))


def outcome_of(settings: Settings, trials: Sequence[Trial], several: bool) -> Outcome:
    """The scores of all trials, one after the other."""
    scores = [learn(settings, trial.learned, several).scores(trial.asked.vectors) for trial in trials]
    cosines = [nearest_cosines(trial.asked, trial.learned) for trial in trials]
    return Outcome(np.vstack(scores), np.vstack([trial.asked.marks for trial in trials]), np.concatenate(cosines))


def nearest_cosines(asked: Rows, learned: Rows) -> Numbers:
    """How near the nearest row is."""
    return top_k(asked.vectors, learned.vectors, 1)[1][:, 0].astype(np.float64)


def calibrate(outcome: Outcome, several: bool) -> Calibration:
    """The scale, and the shift if there are several labels, with the least logarithmic loss on rows held out."""
    from scipy.optimize import minimize

    def mean_loss(values: Numbers) -> float:
        return loss(outcome, Calibration(float(np.exp(values[0])), float(values[1]) if several else 0.0), several)

    starts = [np.array([start, 0.0][: 1 + several]) for start in (0.0, 2.0)]
    best = min((minimize(mean_loss, start, method="Nelder-Mead") for start in starts), key=lambda end: end.fun)
    scale = float(np.exp(np.clip(best.x[0], -7, 7)))
    return Calibration(scale, float(best.x[1]) if several else 0.0)


def loss(outcome: Outcome, calibration: Calibration, several: bool) -> float:
    """The mean logarithmic loss of a text."""
    scaled, marks = calibration.scale * outcome.scores, outcome.marks
    if several:
        scaled = scaled + calibration.shift
        return float(np.logaddexp(0.0, np.where(marks, -scaled, scaled)).sum(axis=1).mean())
    return float((logsumexp(scaled, axis=1) - scaled[marks]).mean())


def decide(probabilities: Numbers, several: bool) -> Marks:
    """The labels that are given (n, l): the most probable one, and with several all that are more probable than not."""
    given = np.zeros(probabilities.shape, bool)
    given[np.arange(len(given)), probabilities.argmax(axis=1)] = True
    return given | (probabilities >= 0.5) if several else given


def confidence(probabilities: Numbers, given: Marks) -> Numbers:
    """The probability of an answer: that of the least probable label in it."""
    return np.where(given, probabilities, 1.0).min(axis=1)


def agreement(given: Marks, marks: Marks) -> Numbers:
    """For each text 1 if the label is right; with several labels the F1 of those given and those it has."""
    return 2 * (given & marks).sum(axis=1) / np.maximum(given.sum(axis=1) + marks.sum(axis=1), 1)


def hits(outcome: Outcome, calibration: Calibration, several: bool) -> Numbers:
    """The agreement of every text."""
    return agreement(decide(calibration.probabilities(outcome.scores, several), several), outcome.marks)


def abstention_of(outcome: Outcome, calibration: Calibration, several: bool) -> Abstention:
    """When to abstain, so that the share of right answers asked for is reached."""
    probabilities = calibration.probabilities(outcome.scores, several)
    given = decide(probabilities, several)
    right, sure = agreement(given, outcome.marks), confidence(probabilities, given)
    cosine = float(np.quantile(outcome.cosines, KNOWN_FAR))
    near = outcome.cosines >= cosine
    asked = next((share for share in ASKED if share > right.mean()), 0.0)
    return Abstention(_threshold(sure[near], right[near], asked) if asked else 0.0, cosine, asked)


def _threshold(sure: Numbers, right: Numbers, asked: float) -> float:
    """The lowest probability from which so many answers are right, or else the one from which most are."""
    order = np.argsort(-sure, kind="stable")
    shares = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    places = np.arange(min(FEWEST_ANSWERED, len(order)) - 1, len(order))
    enough = places[shares[places] >= asked]
    return float(sure[order][enough[-1] if len(enough) else places[shares[places].argmax()]])


def learn_from(settings: Settings, rows: Rows, several: bool) -> tuple[Head, Rows]:
    """The head that is used, and the rows that it learned from."""
    kept = sampled(rows, MOST_LEARNT)
    return learn(settings, kept, several), kept


def without_labels(trial: Trial, groups: int) -> Iterator[tuple[Trial, npt.NDArray[np.bool_]]]:
    """The trial without one group of labels after the other, and which texts then have a known label."""
    labels = np.random.default_rng(SEED).permutation(trial.learned.marks.shape[1])
    for group in np.array_split(labels, groups):
        kept = np.asarray(~trial.learned.marks[:, group].any(axis=1))
        known = np.asarray(~trial.asked.marks[:, group].any(axis=1))
        if kept.any() and known.any() and not known.all():
            yield Trial(trial.learned.where(kept), trial.asked), known
