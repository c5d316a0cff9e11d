"""A model on many tasks: each distinct sentence is encoded once over all of them, and what is scored is kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from safetensors import SafetensorError

from sentloom.encoder.prompts import ROLES, Prompt, Prompts, Role, prompt_for
from sentloom.errors import InputError
from sentloom.evaluation.score_cache import keep, kept, place_of
from sentloom.evaluation.task import Lookup, Scores, Task
from sentloom.progress import progress
from sentloom.search.vector_cache import VectorCache
from sentloom.search.vectors import Vectors, encode_checked


class Model(Protocol):
    """What can be scored: an Encoder, or a baseline. One with `fit(texts)` is fitted on the sentences of each task."""

    def encode(self, texts: Sequence[str], *, role: Role = ..., show_progress: bool = ...) -> Vectors:
        """One vector a text."""

    def fingerprint(self) -> str:
        """A hash of all that a vector depends on."""


@dataclass
class Memory:
    """What is kept on disk between runs. `note` says why scores are not, where the disk does not take them."""

    vectors: VectorCache
    scores: Path
    note: str = ""

    def keep(self, place: Path, scores: Scores) -> None:
        """Write scores; a disk that is full or not ours to write to costs a note and nothing else."""
        try:
            keep(place, scores)
        except (OSError, SafetensorError) as error:
            self.note = f"scores are not kept in {self.scores}: {error}"


def score_tasks(
    model: Model, tasks: Sequence[Task], memory: Memory | None = None, *, show_progress: bool = False
) -> list[Scores]:
    """The scores of each task, in order. With a memory each is kept as soon as it is there."""
    fingerprint = model.fingerprint() if memory else ""
    places = [place_of(memory.scores, fingerprint, task) if memory else None for task in tasks]
    known = [kept(place) if place else None for place in places]
    lookup = _Lookup(model, fingerprint)
    lookup.prepare([task for task, scores in zip(tasks, known, strict=True) if scores is None], memory, show_progress)
    found = []
    with progress("scoring", len(tasks), "sets", show_progress) as advance:
        for task, place, scores in zip(tasks, places, known, strict=True):
            advance(0, task.name)
            if scores is None:
                scores = _scored(task, lookup)
                if memory and place:
                    memory.keep(place, scores)
            found.append(scores)
            advance(1, task.name)
    return found


def _scored(task: Task, lookup: "_Lookup") -> Scores:
    """What cannot be scored is said with the name of the set: there may be forty of them."""
    try:
        return task.score(lookup.of(task))
    except InputError as error:
        raise InputError(f"{task.name}, {error.where}", error.problem, error.expected, error.fix) from error


class _Lookup:
    """The vectors of all sentences that some tasks need. Roles with the same prompt share them."""

    def __init__(self, model: Model, fingerprint: str) -> None:
        self.model, self.fingerprint = model, fingerprint
        self.fit: Callable[[Sequence[str]], Model] | None = getattr(model, "fit", None)
        self.same = _same_roles(model)
        self.rows: dict[Role, dict[str, int]] = {}
        self.vectors: dict[Role, Vectors] = {}

    def of(self, task: Task) -> Lookup:
        """Where a task finds its vectors. What is fitted on target text is fitted on the task's own."""
        if self.fit is None:
            return self._rows_of
        fitted = self.fit(distinct(task.texts))
        return lambda texts, role="symmetric": encode_checked(lambda some: fitted.encode(some, role=role), texts)

    def _rows_of(self, texts: Sequence[str], role: Role = "symmetric") -> Vectors:
        one = self.same[role]
        return self.vectors[one][[self.rows[one][text] for text in texts]]

    def prepare(self, tasks: Sequence[Task], memory: Memory | None, show_progress: bool) -> None:
        """Encode what these tasks need, each distinct sentence once a prompt."""
        if self.fit is not None:
            return
        for task in tasks:
            for role, texts in task.texts.items():
                rows = self.rows.setdefault(self.same[role], {})
                for text in texts:
                    rows.setdefault(text, len(rows))
        for role, rows in self.rows.items():
            self.vectors[role] = self._vectors(list(rows), role, memory, show_progress)

    def _vectors(self, texts: Sequence[str], role: Role, memory: Memory | None, show_progress: bool) -> Vectors:
        def encode(some: Sequence[str]) -> Vectors:
            return encode_checked(lambda part: self.model.encode(part, role=role, show_progress=own_bar), some)

        own_bar = show_progress and memory is None  # the memory has one for all of its blocks
        if memory is None:
            return encode(texts)
        return memory.vectors.vectors(f"{self.fingerprint}-{role}", texts, encode, show_progress=show_progress)


def _same_roles(model: Model) -> dict[Role, Role]:
    """For each role the first one that has its prompt; of a model that tells no prompts, each is its own."""
    prompts: Prompts | None = getattr(model, "prompts", None)
    first: dict[Prompt, Role] = {}
    return {role: role if prompts is None else first.setdefault(prompt_for(prompts, role), role) for role in ROLES}


def distinct(texts: Mapping[Role, Sequence[str]]) -> list[str]:
    """The distinct sentences of a task, over all roles."""
    return list(dict.fromkeys(text for some in texts.values() for text in some))
