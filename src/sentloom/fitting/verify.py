"""Verify: the winner against its base on test rows that nothing was chosen on, and its general ability."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.task import Task
from sentloom.fitting.gate import Gate, general_warning, judge, mean_measure, measure
from sentloom.fitting.panel import CAUTION, HALVES, is_at_chance
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Measure, Part
from sentloom.fitting.tasks import task_labels

FEWEST_HALVES = 25  # to search among: with fewer, ten found by chance are too large a part
NOT_PROSE = "the base matches the two halves of a sentence no more often than by chance"


@dataclass(frozen=True)
class Proof:
    """What was measured, what it amounts to, and whether that is enough."""

    measures: tuple[Measure, ...]
    decided: Measure
    gate: Gate
    warnings: tuple[str, ...]
    not_prose: bool = False  # nothing can be shown on this text


@dataclass(frozen=True)
class Duel:
    """The base and the winner on the same tasks."""

    base: Encoder
    after: Encoder
    memory: Memory

    def measured(self, tasks: Sequence[Task], part: Part) -> tuple[list[Measure], Measure]:
        """Both on some tasks, and their mean."""
        befores, afters = (score_tasks(encoder, tasks, self.memory) for encoder in (self.base, self.after))
        scored = zip(tasks, task_labels(tasks), befores, afters, strict=True)
        found = [measure(task, label, part, *both) for task, label, *both in scored]
        mains = [[scores[task.main] for task, scores in zip(tasks, some, strict=True)] for some in (befores, afters)]
        return found, mean_measure(found, *mains)


def verify(duel: Duel, prepared: Prepared, validation_gain: float) -> Proof:
    """Measure what decides (the sets that the user named, otherwise the test rows), and what is only watched."""
    own = prepared.deciding(prepared.test)
    deciding = list(prepared.against) or own
    measures, decided = duel.measured(deciding, "deciding")
    if prepared.against:
        measures += duel.measured(own, "watched")[0]
    (general,), _ = duel.measured([prepared.general], "general")
    label_free = prepared.label_free
    warnings = [general_warning(general), f"No labels decided this: {CAUTION}." if label_free else None]
    chance = label_free and is_not_prose(duel.base, deciding, duel.memory)
    gate = judge(decided, validation_gain, f"Nothing can be shown on this text: {NOT_PROSE}." if chance else None)
    return Proof((*measures, general), decided, gate, tuple(filter(None, warnings)), not_prose=chance)


def is_not_prose(base: Encoder, tasks: Sequence[Task], memory: Memory) -> bool:
    """Whether the halves of sentences have nothing to do with each other, as far as the base can tell."""
    halves = [task for task in tasks if task.name == HALVES and task.settings["documents"] >= FEWEST_HALVES]
    found = zip(halves, score_tasks(base, halves, memory), strict=True)
    return any(is_at_chance(scores["recall@10"], task.settings["documents"]) for task, scores in found)


def refuse_not_prose(base: Encoder, prepared: Prepared, memory: Memory) -> None:
    """Refuse raw text that means nothing to the base, before anything is trained."""
    if not prepared.label_free or not is_not_prose(base, prepared.deciding(prepared.validation), memory):
        return
    where = ", ".join(given.name for given in prepared.inputs)
    fix = (
        "give labelled pairs or a labelled set (--against); if the base does not know the language, choose one that "
        "does (--base); --force trains anyway"
    )
    raise InputError(where, f"nothing can be shown on this text: {NOT_PROSE}", "sentences with some content", fix)
