"""The proof: the winner against its base on rows that nothing was chosen on, and its general ability."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.task import Task
from sentloom.fitting.gate import Gate, general_warning, judge, measure, total
from sentloom.fitting.panel import CAUTION, is_at_chance
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Measure, Part
from sentloom.fitting.tasks import in_words, named_words

HALVES = "halves"
FEWEST_HALVES = 25  # among which a half is looked for: of fewer, ten found by chance are too large a part
NO_PROSE = "the base finds a sentence's second half for its first no more often than by chance"


@dataclass(frozen=True)
class Proof:
    """What was measured, what it comes to, and whether that is enough."""

    measures: tuple[Measure, ...]
    decided: Measure
    gate: Gate
    warnings: tuple[str, ...]
    no_prose: bool = False  # nothing can be proven on this text


@dataclass(frozen=True)
class Duel:
    """Base and winner before the same tasks."""

    base: Encoder
    after: Encoder
    memory: Memory

    def measured(self, tasks: Sequence[Task], part: Part) -> tuple[list[Measure], Measure]:
        """Both on some tasks, and their mean."""
        befores, afters = (score_tasks(encoder, tasks, self.memory) for encoder in (self.base, self.after))
        labels = [in_words(task) if len(tasks) == 1 else named_words(task) for task in tasks]
        scored = zip(tasks, labels, befores, afters, strict=True)
        found = [measure(task, label, part, *both) for task, label, *both in scored]
        mains = [[scores[task.main] for task, scores in zip(tasks, some, strict=True)] for some in (befores, afters)]
        return found, total(found, *mains)


def prove(duel: Duel, prepared: Prepared, chosen: float) -> Proof:
    """Measure what decides (what the user named, else what is held out), and what is only watched."""
    own = prepared.deciding(prepared.prove)
    deciding = list(prepared.against) or own
    measures, decided = duel.measured(deciding, "deciding")
    if prepared.against:
        measures += duel.measured(own, "watched")[0]
    (general,), _ = duel.measured([prepared.general], "general")
    label_free = prepared.label_free
    warnings = [general_warning(general), f"No labels decided this: {CAUTION}." if label_free else None]
    chance = label_free and is_no_prose(duel.base, deciding, duel.memory)
    gate = judge(decided, chosen, f"Nothing can be proven on this text: {NO_PROSE}." if chance else None)
    return Proof((*measures, general), decided, gate, tuple(filter(None, warnings)), no_prose=chance)


def is_no_prose(base: Encoder, tasks: Sequence[Task], memory: Memory) -> bool:
    """Whether the halves of sentences have nothing to do with each other, as far as the base can tell."""
    halves = [task for task in tasks if task.name == HALVES and task.settings["documents"] >= FEWEST_HALVES]
    found = zip(halves, score_tasks(base, halves, memory), strict=True)
    return any(is_at_chance(scores["recall@10"], task.settings["documents"]) for task, scores in found)


def refuse_no_prose(base: Encoder, prepared: Prepared, memory: Memory) -> None:
    """Raw text that decides must be text to the base; said before anything is trained."""
    if not prepared.label_free or not is_no_prose(base, prepared.deciding(prepared.choose), memory):
        return
    where = ", ".join(material.name for material in prepared.materials)
    fix = (
        "give labelled pairs or a labelled set (--against); if the base does not know the language, choose one that "
        "does (--base); --force trains all the same"
    )
    raise InputError(where, f"text on which nothing can be proven: {NO_PROSE}", "sentences with some content", fix)
