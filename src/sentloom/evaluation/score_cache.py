"""A cache of scores, so that an interrupted evaluation resumes and no model is scored twice."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.evaluation.task import Score, Scores, Task
from sentloom.files import new_file
from sentloom.progress import note

SCORING = 2  # increased when the same vectors and data give different scores


def score_file(folder: Path, model: str, task: Task) -> Path:
    """Return the file of a task's scores for the model with this fingerprint, named by all that they depend on."""
    depends = json.dumps([SCORING, model, task.name, task.sha256, dict(task.settings)], sort_keys=True)
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
