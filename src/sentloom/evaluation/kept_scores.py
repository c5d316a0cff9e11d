"""Scores that were computed before, so that a suite that died goes on and a model is never scored twice."""

import hashlib
import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.evaluation.task import Score, Scores, Task
from sentloom.files import new_file

SCORING = 1  # raised when the same vectors and data give other scores


def place_of(folder: Path, model: str, task: Task) -> Path:
    """The file of a task's scores for the model with this fingerprint: the name holds all that they depend on."""
    depends = json.dumps([SCORING, model, task.name, task.sha256, dict(task.settings)], sort_keys=True)
    return folder / f"{hashlib.sha256(depends.encode()).hexdigest()}.safetensors"


def keep(path: Path, scores: Scores) -> None:
    """Write scores with their items."""
    arrays, kinds = {}, {}
    for name, score in scores.items():
        arrays[f"{name} items"] = np.ascontiguousarray(score.items, np.float64)
        if score.groups is not None:
            arrays[f"{name} groups"] = np.ascontiguousarray(score.groups, np.int64)
        kinds[name] = [score.metric, score.weighted]
    with new_file(path) as part:
        save_file(arrays, part, metadata={"scores": json.dumps(kinds)})


def kept(path: Path) -> Scores | None:
    """Scores that were written before; None if there are none, or if the file is damaged."""
    try:
        with safe_open(path, "np") as file:
            kinds = json.loads(file.metadata()["scores"])
            names = set(file.keys())
            return {
                name: Score(
                    metric,
                    file.get_tensor(f"{name} items"),
                    file.get_tensor(f"{name} groups") if f"{name} groups" in names else None,
                    weighted,
                )
                for name, (metric, weighted) in kinds.items()
            }
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
