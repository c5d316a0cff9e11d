"""Verify: the winner against its base on test rows that nothing was chosen on, and its general ability."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentloom.encoder import Encoder
from sentloom.errors import InputError, option
from sentloom.evaluation.bench import Memory, main_scores, score_tasks
from sentloom.evaluation.significance import LEVEL, corrected_level
from sentloom.evaluation.task import Scores, Task
from sentloom.fitting.examples import examples
from sentloom.fitting.gate import Gate, general_warning, judge, mean_measure, measure, which_to_believe
from sentloom.fitting.panel import CAUTION, HALVES, NO_LABELS, is_at_chance
from sentloom.fitting.power import power_of
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Example, Measure, Part, Power, Run, Threshold
from sentloom.fitting.tasks import task_labels
from sentloom.fitting.threshold import find_threshold
from sentloom.fitting.uses import Uses, record_use

TEST_ROWS, GENERAL_ABILITY = "the score on the data's own test rows", "general ability"  # measured if there is time
FEWEST_HALVES = 25  # to search among: with fewer, ten found by chance are too large a part
NOT_PROSE = "the base matches the two halves of a sentence no more often than by chance"

HasTime = Callable[[str, Sequence[Task]], bool]  # whether there is time to measure something by scoring these tasks


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


@dataclass(frozen=True)
class Duel:
    """The base and the winner on the same tasks."""

    base: Encoder
    after: Encoder
    memory: Memory
    folds: tuple[Encoder, ...] = ()  # the winner trained without each fold, where it was cross-validated

    def measured(self, tasks: Sequence[Task], part: Part, level: float = LEVEL) -> tuple[list[Measure], Measure]:
        """Both on some tasks, and their mean."""
        befores, afters = self.scores(tasks)
        scored = zip(tasks, task_labels(tasks), befores, afters, strict=True)
        found = [measure(task, label, part, old, new, level) for task, label, old, new in scored]
        before, after = (
            [scores[task.main] for task, scores in zip(tasks, some, strict=True)] for some in (befores, afters)
        )
        return found, mean_measure(found, before, after, level)

    def scores(self, tasks: Sequence[Task]) -> tuple[list[Scores], list[Scores]]:
        """The scores of both; the second call reads them from the cache."""
        models = (self.base, self.after)
        before, after = (score_tasks(encoder, tasks, self.memory, show_progress=True) for encoder in models)
        return before, after


def verify(
    duel: Duel,
    prepared: Prepared,
    best: Run,
    runs: int,
    other: str = "its base",
    has_time: HasTime = lambda what, tasks: True,
) -> Proof:
    """Measure what decides (the sets that the user named, otherwise the test rows), and then what is only watched."""
    deciding = prepared.proving
    uses = record_use(deciding, duel.after.fingerprint(), duel.base.fingerprint())
    level = corrected_level(uses.number)
    measures, decided = duel.measured(deciding, "deciding", level)
    tested = is_tested(prepared, has_time)
    if prepared.against and tested:
        measures += _watched(duel, prepared.deciding(prepared.test))
    watched = [prepared.general]
    general = duel.measured(watched, "general")[0] if has_time(GENERAL_ABILITY, watched) else []
    label_free = prepared.label_free
    warnings = [*map(general_warning, general), f"{NO_LABELS}: {CAUTION}." if label_free else None]
    chance = label_free and is_not_prose(duel.base, deciding, duel.memory)
    nothing = f"Nothing can be shown on this text: {NOT_PROSE}." if chance else None
    folds = len(prepared.folds)
    gate = judge(decided, best.difference or 0.0, nothing, other=other, folds=folds, label_free=label_free)
    won, lost = examples((duel.base, duel.after), deciding, duel.scores(deciding), duel.memory)
    return Proof(
        (*measures, *general),
        decided,
        gate,
        tuple(filter(None, warnings)),
        uses,
        power_of(main_scores(duel.base, deciding, duel.memory), level, label_free=label_free),
        "" if chance or label_free else which_to_believe(decided, best, runs, folds),
        won,
        lost,
        find_threshold(duel.after, duel.folds, prepared, duel.memory) if tested else None,
        not_prose=chance,
    )


def is_tested(prepared: Prepared, has_time: HasTime) -> bool:
    """Whether the test rows are scored: they decide, or there is time for them besides what decides."""
    return not prepared.against or has_time(TEST_ROWS, prepared.deciding(prepared.test))


def _watched(duel: Duel, tasks: Sequence[Task]) -> list[Measure]:
    """The test rows, where they do not decide. Their scores are seen, so that is a use of them too."""
    uses = record_use(tasks, duel.after.fingerprint(), duel.base.fingerprint())
    return duel.measured(tasks, "watched", corrected_level(uses.number))[0]


def is_not_prose(base: Encoder, tasks: Sequence[Task], memory: Memory) -> bool:
    """Whether the halves of sentences have nothing to do with each other, as far as the base can tell."""
    halves = [task for task in tasks if task.name == HALVES and task.settings["documents"] >= FEWEST_HALVES]
    found = zip(halves, score_tasks(base, halves, memory), strict=True)
    return any(is_at_chance(scores["recall@10"], task.settings["documents"]) for task, scores in found)


def refuse_not_prose(bases: Sequence[Encoder], prepared: Prepared, memory: Memory) -> None:
    """Refuse raw text that means nothing to any base, before anything is trained."""
    tasks = prepared.deciding(prepared.validation)
    if not prepared.label_free or not all(is_not_prose(base, tasks, memory) for base in bases):
        return
    where = ", ".join(given.name for given in prepared.inputs)
    fix = (
        f"give labelled pairs or a labelled set ({option('against')}); if the base does not know the language, choose "
        f"one that does ({option('base')}); {option('force', True)} trains anyway"
    )
    raise InputError(where, f"nothing can be shown on this text: {NOT_PROSE}", "sentences with some content", fix)
