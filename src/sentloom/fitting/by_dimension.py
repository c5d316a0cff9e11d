"""Scores by dimension: what base and winner are worth if their vectors are cut to the first so many dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentloom.encoder import Encoder
from sentloom.encoder.dimensions import cut
from sentloom.encoder.prompts import Prompts, Role
from sentloom.evaluation.bench import Memory, score_tasks, vectors_of
from sentloom.evaluation.task import Scores, Task
from sentloom.fitting.gate import mean_measure, measure
from sentloom.fitting.race import RaceContext
from sentloom.fitting.result import Measure
from sentloom.fitting.tasks import task_labels
from sentloom.fitting.verify import Duel
from sentloom.search.vectors import Vectors


@dataclass(frozen=True)
class Shortened:
    """An encoder whose vectors are cut; whole vectors are cached, so nothing is encoded again."""

    encoder: Encoder
    dimension: int
    memory: Memory

    @property
    def prompts(self) -> Prompts:
        """Those of the encoder."""
        return self.encoder.prompts

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The first dimensions, at unit length."""
        return cut(vectors_of(self.encoder, texts, role, self.memory), self.dimension, unit_length=True)

    def fingerprint(self) -> str:
        """The encoder's, with the dimension."""
        return f"{self.encoder.fingerprint()}-{self.dimension}"


def dimensions_in_time(context: RaceContext, duel: Duel, tasks: Sequence[Task]) -> tuple[Measure, ...]:
    """Both models with every dimension that the winner was trained for.

    That costs little once there are vectors, unless a probe is trained for each: then as long as there is time for one.
    """
    found, took, probed = list[Measure](), 0.0, any(task.settings.get("probe") for task in tasks)
    for one in duel.after.dimensions:
        if not probed or context.has_time(f"the score with {one} dimensions", took):
            began = context.clock.now()
            found += dimension_measures(duel, tasks, [one])
            took = context.clock.now() - began
    return tuple(found)


def dimension_measures(duel: Duel, tasks: Sequence[Task], dimensions: Sequence[int]) -> tuple[Measure, ...]:
    """Both models on what decides, for every dimension that the winner was trained for."""
    return tuple(_measured(duel, tasks, one) for one in dimensions)


def _measured(duel: Duel, tasks: Sequence[Task], dimension: int) -> Measure:
    before, after = (_scores(encoder, dimension, duel.memory, tasks) for encoder in (duel.base, duel.after))
    scored = zip(tasks, task_labels(tasks), before, after, strict=True)
    found = [measure(task, label, "watched", old, new) for task, label, old, new in scored]
    old, new = ([scores[task.main] for task, scores in zip(tasks, some, strict=True)] for some in (before, after))
    mean = mean_measure(found, old, new)
    return replace(mean, name=str(dimension), label=f"{dimension} dimensions", part="watched")


def _scores(encoder: Encoder, dimension: int, memory: Memory, tasks: Sequence[Task]) -> list[Scores]:
    """Of an encoder, with vectors that are not longer than its own."""
    if dimension >= encoder.dimension:
        return score_tasks(encoder, tasks, memory)
    return score_tasks(Shortened(encoder, dimension, memory), tasks)
