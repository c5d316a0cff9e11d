"""Score a model on tasks.

The sentences of all tasks are encoded together, each distinct one once per prompt. Vectors and scores are cached on
disk, so that an interrupted evaluation resumes and no model is scored twice.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.encoder.tokens import ROLES, Prompt, Prompts, Role, prompt_for
from sentloom.errors import InputError
from sentloom.evaluation.task import Lookup, Score, Scores, Task
from sentloom.files import new_file
from sentloom.progress import note, progress
from sentloom.search.vectors import VectorCache, Vectors, encode_checked

SCORING = 2  # increased when the same vectors and data give different scores


@runtime_checkable
class Model(Protocol):
    """An Encoder or a baseline. A model with `fit(texts)` is fitted on the sentences of each task."""

    def encode(self, texts: Sequence[str], *, role: Role = ..., show_progress: bool = ...) -> Vectors:
        """Return one vector per text."""

    def fingerprint(self) -> str:
        """Hash everything vectors depend on."""


@dataclass
class Memory:
    """The caches of vectors and scores on disk. `note` says why scores could not be cached."""

    vectors: VectorCache
    scores: Path
    note: str = ""

    def write(self, file: Path, scores: Scores) -> None:
        """Cache scores; if the disk is full or read-only, only set the note."""
        try:
            write_scores(file, scores)
        except (OSError, SafetensorError) as error:
            self.note = f"scores are not cached in {self.scores}: {error}"


def score_tasks(
    model: Model, tasks: Sequence[Task], memory: Memory | None = None, *, show_progress: bool = False
) -> list[Scores]:
    """Return the scores of each task, in order. With a memory, scores are cached as soon as they are computed."""
    fingerprint = model.fingerprint() if memory else ""
    files = [score_file(memory.scores, fingerprint, task) if memory else None for task in tasks]
    known = [read_scores(file) if file else None for file in files]
    lookup = _Lookup(model, fingerprint)
    unknown = [task for task, scores in zip(tasks, known, strict=True) if scores is None]
    lookup.prepare([task for task in unknown if task.seed is None], memory, show_progress)
    results = []
    with progress("scoring", len(tasks), "sets", show_progress) as advance:
        for task, file, scores in zip(tasks, files, known, strict=True):
            advance(0, task.name)
            if scores is None:
                scores = _scored(task, lookup)
                if memory and file:
                    memory.write(file, scores)
            results.append(scores)
            advance(1, task.name)
    return results


def main_scores(
    model: Model, tasks: Sequence[Task], memory: Memory | None = None, *, show_progress: bool = False
) -> list[Score]:
    """Return the main score of each task."""
    results = score_tasks(model, tasks, memory, show_progress=show_progress)
    return [scores[task.main] for task, scores in zip(tasks, results, strict=True)]


def vectors_of(
    model: Model, texts: Sequence[str], role: Role, memory: Memory, *, show_progress: bool = False
) -> Vectors:
    """Return the vectors of texts, from the cache as far as they are there."""
    lookup = _Lookup(model, model.fingerprint())
    return lookup.vectors_of(texts, lookup.same[role], memory, show_progress=show_progress)


def _scored(task: Task, lookup: "_Lookup") -> Scores:
    """Score one task; an error gets the name of the set, because there may be forty of them."""
    try:
        return task.score(lookup.of(task)) if task.seed is None else task.score(lookup.model, task.seed)
    except InputError as error:
        raise InputError(f"{task.name}, {error.where}", error.problem, error.expected, error.fix) from error


class _Lookup:
    """The vectors of all sentences that the tasks need. Roles with the same prompt share vectors."""

    def __init__(self, model: Model, fingerprint: str) -> None:
        self.model, self.fingerprint = model, fingerprint
        self.fit: Callable[[Sequence[str]], Model] | None = getattr(model, "fit", None)
        self.same = _same_roles(model)
        self.rows: dict[Role, dict[str, int]] = {}
        self.vectors: dict[Role, Vectors] = {}

    def of(self, task: Task) -> Lookup:
        """Return the lookup of a task; a model with `fit` is fitted on the task's own texts."""
        if self.fit is None:
            return self._rows_of
        fitted = self.fit(distinct(task.texts))
        return lambda texts, role="symmetric": encode_checked(lambda part: fitted.encode(part, role=role), texts)

    def _rows_of(self, texts: Sequence[str], role: Role = "symmetric") -> Vectors:
        role = self.same[role]
        return self.vectors[role][[self.rows[role][text] for text in texts]]

    def prepare(self, tasks: Sequence[Task], memory: Memory | None, show_progress: bool) -> None:
        """Encode the sentences of these tasks, each distinct sentence once per prompt."""
        if self.fit is not None:
            return
        for task in tasks:
            for role, texts in task.texts.items():
                rows = self.rows.setdefault(self.same[role], {})
                for text in texts:
                    rows.setdefault(text, len(rows))
        for role, rows in self.rows.items():
            self.vectors[role] = self.vectors_of(list(rows), role, memory, show_progress=show_progress)

    def vectors_of(self, texts: Sequence[str], role: Role, memory: Memory | None, *, show_progress: bool) -> Vectors:
        """Encode texts, or read their vectors from the cache."""

        def encode(uncached: Sequence[str]) -> Vectors:
            return encode_checked(lambda part: self.model.encode(part, role=role, show_progress=own_bar), uncached)

        blocks = memory is not None and len(texts) > memory.vectors.block  # of which the cache shows one bar
        own_bar = show_progress and not blocks
        if memory is None:
            return encode(texts)
        shown = show_progress and blocks
        return memory.vectors.vectors(f"{self.fingerprint}-{role}", texts, encode, show_progress=shown)


def _same_roles(model: Model) -> dict[Role, Role]:
    """Map each role to the first role with the same prompt, or to itself if the model has no prompts."""
    prompts: Prompts | None = getattr(model, "prompts", None)
    first: dict[Prompt, Role] = {}
    return {role: role if prompts is None else first.setdefault(prompt_for(prompts, role), role) for role in ROLES}


def distinct(texts: Mapping[Role, Sequence[str]]) -> list[str]:
    """List the distinct sentences of a task, over all roles."""
    return list(dict.fromkeys(text for of_role in texts.values() for text in of_role))


def score_file(folder: Path, model: str, task: Task) -> Path:
    """Return the file of a task's scores for the model with this fingerprint, named by all that they depend on."""
    depends = json.dumps([SCORING, model, task.name, task.sha256, task.settings.recorded()], sort_keys=True)
    return folder / f"{hashlib.sha256(depends.encode()).hexdigest()}.safetensors"


def cached_scores(folder: Path, model: str, task: Task, compute: Callable[[], Scores]) -> Scores:
    """The scores of a task for the model with this fingerprint: read from the folder, or computed and stored."""
    path = score_file(folder, model, task)
    scores = read_scores(path)
    if scores is None:
        scores = compute()
        write_scores(path, scores)
    return scores


def write_scores(path: Path, scores: Scores) -> None:
    """Write scores with their items."""
    arrays, kinds = {}, {}
    for name, score in scores.items():
        arrays[f"{name} items"] = np.ascontiguousarray(score.items, np.float64)
        for kind, numbers in (("groups", score.groups), ("clusters", score.clusters)):
            if numbers is not None:
                arrays[f"{name} {kind}"] = np.ascontiguousarray(numbers, np.int64)
        kinds[name] = [score.metric, score.weighted]
    facts = json.dumps({"scores": kinds, "sha256": _digest(kinds, arrays)})
    with new_file(path) as part:
        save_file(arrays, part, metadata={"facts": facts})  # one entry: safetensors writes several in random order


def read_scores(path: Path) -> Scores | None:
    """Read cached scores; None if there are none or the file is damaged."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, "np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            facts = json.loads(file.metadata()["facts"])
        if facts["sha256"] == _digest(facts["scores"], arrays):
            return {
                name: Score(
                    metric,
                    arrays[f"{name} items"],
                    arrays.get(f"{name} groups"),
                    weighted,
                    arrays.get(f"{name} clusters"),
                )
                for name, (metric, weighted) in facts["scores"].items()
            }
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        pass
    note(f"{path} is damaged: the set is scored again")
    return None


def _digest(kinds: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Hash the content of a score file."""
    digest = hashlib.sha256(json.dumps(kinds).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
