"""Verify: the winner against its base on test rows that nothing was chosen on, and its general ability.

What decides comes first. What is only watched follows, if there is time: the test rows where other sets decide, the
linear probe of labelled texts, and each language of the test rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from sentloom.data.hygiene.languages import language_name
from sentloom.encoder import Encoder
from sentloom.encoder.heads import cut
from sentloom.encoder.tokens import Prompts, Role
from sentloom.errors import InputError, option
from sentloom.evaluation.bench import Memory, main_scores, score_tasks, vectors_of
from sentloom.evaluation.significance import LEVEL, are_enough, corrected_level, effective_clusters
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.fitting.examples import examples, find_threshold
from sentloom.fitting.gate import (
    Basis,
    Gate,
    Uses,
    general_warning,
    judge,
    mean_measure,
    measure,
    no_test_rows,
    power_of,
    record_use,
    untested,
    which_to_believe,
)
from sentloom.fitting.measures import Measure, Part, Power
from sentloom.fitting.panel import HALVES, PANEL, is_at_chance
from sentloom.fitting.plan import Job
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Example, Run, Threshold
from sentloom.fitting.tasks import HeldOut, task_label, task_labels
from sentloom.fitting.training_sets import first_texts, row_languages
from sentloom.search.vectors import Vectors

ALARMS = "the label-free panel"
TEST_ROWS, GENERAL_ABILITY = "the score on the data's own test rows", "general ability"  # measured if there is time
FEWEST_HALVES = 25  # to search among: with fewer, ten found by chance are too large a part
NOT_PROSE = "the base matches the two halves of a sentence no more often than by chance"


@dataclass(frozen=True)
class Proof:
    """What was measured, what it amounts to, and whether that is enough."""

    measures: tuple[Measure, ...]
    decided: Measure
    gate: Gate
    warnings: tuple[str, ...]
    uses: Uses
    power: Power  # at the level of the verdict
    believe: str
    won: tuple[Example, ...]
    lost: tuple[Example, ...]
    threshold: Threshold | None
    not_prose: bool = False  # nothing can be shown on this text
    tested: bool = True  # whether the test rows were scored


@dataclass(frozen=True)
class Duel:
    """The base and the winner on the same tasks."""

    base: Encoder
    after: Encoder
    memory: Memory
    folds: tuple[Encoder, ...] = ()  # the winner trained without each fold, where it was cross-validated

    def measured(self, tasks: Sequence[Task], part: Part, level: float = LEVEL) -> tuple[list[Measure], Measure]:
        """Both on these tasks, and the mean over them."""
        befores, afters = self.scores(tasks)
        scored = zip(tasks, task_labels(tasks), befores, afters, strict=True)
        measures = [measure(task, label, part, old, new, level) for task, label, old, new in scored]
        sides = (befores, afters)
        before, after = ([scores[task.main] for task, scores in zip(tasks, side, strict=True)] for side in sides)
        return measures, mean_measure(measures, before, after, level)

    def scores(self, tasks: Sequence[Task]) -> tuple[list[Scores], list[Scores]]:
        """The scores of both; the second call reads them from the cache."""
        models = (self.base, self.after)
        before, after = (score_tasks(encoder, tasks, self.memory, show_progress=True) for encoder in models)
        return before, after


@dataclass(frozen=True)
class Trial:
    """What is judged: the run that won, among how many, and what its model has to beat."""

    best: Run
    runs: int = 1
    other: str = "its base"
    choosing: tuple[Sequence[Score], Sequence[Score]] = ((), ())  # of base and winner on what it was chosen on


def verify(duel: Duel, prepared: Prepared, trial: Trial, job: Job) -> Proof:
    """Measure what decides (the sets that the user named, otherwise the test rows), and then what only informs."""
    if not prepared.proving:
        return _without_test_rows(duel, prepared, trial, job)
    deciding, folds, label_free = prepared.proving, len(prepared.folds), prepared.label_free
    basis = Basis(trial.other, folds, prepared.blind, prepared.agrees, prepared.mined)
    uses = record_use(deciding, duel.after.fingerprint(), duel.base.fingerprint())
    level = corrected_level(uses.number)
    measures, decided = duel.measured(deciding, "deciding", level)
    tested = True
    if prepared.against:
        watched = job.if_time(TEST_ROWS, lambda: _watched(duel, prepared.deciding(prepared.test)))
        tested, measures = watched is not None, [*measures, *(watched or ())]
    if prepared.watched:
        measures += job.if_time(ALARMS, lambda: duel.measured(prepared.watched, "watched")[0]) or []
    general = _general(duel, prepared, job)
    warnings = [*map(general_warning, general), *map(alarm, measures)]
    chance = label_free and is_not_prose(duel.base, deciding, duel.memory)
    nothing = f"Nothing can be shown on this text: {NOT_PROSE}." if chance else None
    forgotten = next(filter(None, map(general_warning, general)), None) if label_free else None
    gate = judge(decided, trial.best.difference or 0.0, basis, nothing or forgotten)
    won, lost = examples((duel.base, duel.after), deciding, duel.scores(deciding), duel.memory)
    return Proof(
        (*measures, *general),
        decided,
        gate,
        tuple(filter(None, warnings)),
        uses,
        power_of(main_scores(duel.base, deciding, duel.memory), level, label_free=prepared.blind),
        "" if chance or label_free else which_to_believe(decided, trial.best, trial.runs, folds),
        won,
        lost,
        find_threshold(duel.after, duel.folds, prepared, duel.memory) if tested else None,
        not_prose=chance,
        tested=tested,
    )


def _without_test_rows(duel: Duel, prepared: Prepared, trial: Trial, job: Job) -> Proof:
    """What the folds show, on which the winner was chosen: no verdict, but a difference and its interval."""
    asked = {task.name: task for fold in prepared.folds for task in fold.tasks}
    scored = zip(asked.values(), *trial.choosing, strict=True)
    measures = [
        measure(task, task_label(task), "deciding", {task.main: before}, {task.main: after})
        for task, before, after in scored
    ]
    decided = mean_measure(measures, *trial.choosing)
    general = job.if_time(GENERAL_ABILITY, lambda: duel.measured([prepared.general], "general")[0]) or []
    power, gate = no_test_rows(trial.choosing[0]), untested(decided, len(prepared.folds))
    warnings = tuple(filter(None, map(general_warning, general)))
    uses = Uses(1, "")
    return Proof((*measures, *general), decided, gate, warnings, uses, power, "", (), (), None, tested=False)


def _general(duel: Duel, prepared: Prepared, job: Job) -> list[Measure]:
    """General ability, if there is time; always without labels, where a model that lost it never wins."""

    def measured() -> list[Measure]:
        return duel.measured([prepared.general], "general")[0]

    return measured() if prepared.label_free else job.if_time(GENERAL_ABILITY, measured) or []


def alarm(measured: Measure) -> str | None:
    """A warning if a label-free task, which a model should not get worse at, shows that it did."""
    if measured.part != "watched" or measured.name not in PANEL or not measured.worse:
        return None
    return (
        f"An alarm: {measured.label} less often than before ({measured.before:.2f} before, {measured.after:.2f} after, "
        f"{measured.low:+.2f} to {measured.high:+.2f})."
    )


def _watched(duel: Duel, tasks: Sequence[Task]) -> list[Measure]:
    """The test rows, where they do not decide. Their scores are seen, so that is a use of them too."""
    uses = record_use(tasks, duel.after.fingerprint(), duel.base.fingerprint())
    return duel.measured(tasks, "watched", corrected_level(uses.number))[0]


def refuse_not_prose(bases: Sequence[Encoder], prepared: Prepared, memory: Memory) -> None:
    """Refuse raw text that means nothing to any base, before anything is trained."""
    tasks = prepared.deciding(prepared.validation)
    if not prepared.label_free or not all(is_not_prose(base, tasks, memory) for base in bases):
        return
    where = ", ".join(fit_input.name for fit_input in prepared.inputs)
    fix = (
        f"give labelled pairs or a labelled set ({option('against')}); if the base does not know the language, choose "
        f"one that does ({option('base')}); {option('force', True)} trains anyway"
    )
    raise InputError(where, f"nothing can be shown on this text: {NOT_PROSE}", "sentences with some content", fix)


def is_not_prose(base: Encoder, tasks: Sequence[Task], memory: Memory) -> bool:
    """Whether the halves of sentences have nothing to do with each other, as far as the base can tell."""
    halves = [task for task in tasks if task.name == HALVES and (task.settings.documents or 0) >= FEWEST_HALVES]
    scored = zip(halves, score_tasks(base, halves, memory), strict=True)
    return any(is_at_chance(scores["recall@10"], task.settings.documents or 0) for task, scores in scored)


def with_probes(duel: Duel, parts: Sequence[HeldOut], measures: Sequence[Measure], job: Job) -> tuple[Measure, ...]:
    """The measures, each with the accuracy of its probe beside the other scores, if there is time for it."""
    by_name = {part.name: part for part in parts if part.probe}
    return tuple(
        _with_probe(duel, by_name[measured.name], measured, job) if measured.name in by_name else measured
        for measured in measures
    )


def _with_probe(duel: Duel, part: HeldOut, measured: Measure, job: Job) -> Measure:
    assert part.probe is not None
    probe = part.probe
    scores = job.if_time(f"the linear probe of {part.name}", lambda: duel.scores([probe]))
    if scores is None:
        return measured
    (before,), (after,) = scores
    return replace(measured, also={**measured.also, "probe": (before["probe"].value, after["probe"].value)})


def language_measures(duel: Duel, prepared: Prepared) -> tuple[Measure, ...]:
    """Both models on the test rows of each language that has enough of them, file by file."""
    inputs = {fit_input.name: fit_input for fit_input in prepared.inputs}
    parts = [part for part in prepared.test if part.labelled or not prepared.labelled]
    spoken = [(part, row_languages(inputs[part.name], part.data)) for part in parts]
    tasks = [task for part in parts for task in part.tasks]
    labels = dict(zip([task.name for task in tasks], task_labels(tasks), strict=True))
    several = [(part, codes) for part, codes in spoken if len(set(codes) - {""}) > 1]
    return tuple(chain(*(_measured(duel, part, codes, labels) for part, codes in several)))


def _measured(duel: Duel, part: HeldOut, rows: Sequence[str], labels: Mapping[str, str]) -> Iterator[Measure]:
    """By language, the most frequent first."""
    for task, before, after in zip(part.tasks, *duel.scores(part.tasks), strict=True):
        codes = item_languages(task, len(before[task.main].items), first_texts(part.data), rows)
        for code in sorted(set(codes) - {""}, key=lambda own: (-codes.count(own), own)):
            chosen = np.array([own == code for own in codes])
            old, new = (_only(scores, task.main, chosen) for scores in (before, after))
            if are_enough(effective_clusters([old[task.main]])):
                language_measure = measure(task, f"{language_name(code)}: {labels[task.name]}", "watched", old, new)
                yield replace(language_measure, name=f"{task.name}, {code}")


def item_languages(task: Task, count: int, texts: Sequence[str], rows: Sequence[str]) -> list[str]:
    """The language of each item: of the row that it asks about or expects, or of the row that it is; "" if unknown."""
    if not task.items:
        return list(rows) if count == len(rows) else []
    known = dict(zip(texts, rows, strict=True))
    return [known.get(asked) or known.get(expected, "") for asked, expected in task.items]


def _only(scores: Scores, main: str, chosen: np.ndarray) -> dict[str, Score]:
    """The main score on some items."""
    whole = scores[main]
    groups, clusters = (None if numbers is None else numbers[chosen] for numbers in (whole.groups, whole.clusters))
    return {main: replace(whole, items=whole.items[chosen], groups=groups, clusters=clusters)}


def language_warnings(measures: Sequence[Measure]) -> Iterator[str]:
    """A warning for every language that the model is worse in."""
    for measured in measures:
        if measured.worse:
            yield (
                f"One language got worse. {measured.label}: {measured.before:.2f} before, {measured.after:.2f} after "
                f"({measured.low:+.2f} to {measured.high:+.2f}, {measured.items:,} test items)."
            )


# --- vectors that are cut ---


def dimensions_in_time(job: Job, duel: Duel, tasks: Sequence[Task]) -> tuple[Measure, ...]:
    """Both models with every dimension that the winner was trained for: one by one, as long as there is time."""
    scored = [
        job.if_time(f"the score with {dimension} dimensions", partial(dimension_measures, duel, tasks, [dimension]))
        for dimension in duel.after.dimensions
    ]
    return tuple(chain(*(measures for measures in scored if measures)))


def dimension_measures(duel: Duel, tasks: Sequence[Task], dimensions: Sequence[int]) -> tuple[Measure, ...]:
    """Both models on what decides, for every dimension that the winner was trained for."""
    return tuple(_cut_measure(duel, tasks, dimension) for dimension in dimensions)


def _cut_measure(duel: Duel, tasks: Sequence[Task], dimension: int) -> Measure:
    before, after = (_cut_scores(encoder, dimension, duel.memory, tasks) for encoder in (duel.base, duel.after))
    scored = zip(tasks, task_labels(tasks), before, after, strict=True)
    measures = [measure(task, label, "watched", old, new) for task, label, old, new in scored]
    old, new = ([scores[task.main] for task, scores in zip(tasks, side, strict=True)] for side in (before, after))
    mean = mean_measure(measures, old, new)
    return replace(mean, name=str(dimension), label=f"{dimension} dimensions", part="watched")


def _cut_scores(encoder: Encoder, dimension: int, memory: Memory, tasks: Sequence[Task]) -> list[Scores]:
    """The scores of an encoder with its first `dimension` dimensions."""
    if dimension >= encoder.dimension:
        return score_tasks(encoder, tasks, memory)
    return score_tasks(Shortened(encoder, dimension, memory), tasks)


@dataclass(frozen=True)
class Shortened:
    """An encoder whose vectors are cut; whole vectors are cached, so nothing is encoded again."""

    encoder: Encoder
    dimension: int
    memory: Memory

    @property
    def prompts(self) -> Prompts:
        """The prompts of the encoder."""
        return self.encoder.prompts

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The first `dimension` dimensions of the vectors, at unit length."""
        return cut(vectors_of(self.encoder, texts, role, self.memory), self.dimension, unit_length=True)

    def fingerprint(self) -> str:
        """The fingerprint of the encoder, with the dimension."""
        return f"{self.encoder.fingerprint()}-{self.dimension}"
