"""Checkpoints: the whole changing state of a run, atomic and hashed.

    checkpoints/step-00000120/state.safetensors      the method: weights, heads, moving average, queue
                             /optimizer.safetensors  the state of the optimiser
                             /checkpoint.json        step, scores, hashes of all files, written last
    checkpoints/best-00000100.safetensors            the best encoder so far, which the newer checkpoints name

A folder is written under a temporary name and renamed when complete; the two newest are kept. A damaged checkpoint is
skipped for the one before it.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sentloom.errors import DamagedFile
from sentloom.files import new_file, new_folder, remove, sha256
from sentloom.methods import Learner

STATE, OPTIMIZER, FACTS = "state.safetensors", "optimizer.safetensors", "checkpoint.json"
KEPT = 2
PLACES = f"step-{8 * '[0-9]'}"


@dataclass(frozen=True)
class Checkpoint:
    """What a run needs to resume. `facts` are plain values: the step, the scores so far, the optimiser's numbers."""

    state: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    facts: dict[str, Any]


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each once: the file format does not allow tied tensors."""
    return {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}


def changing_state(method: Learner) -> dict[str, Tensor]:
    """The tensors of a method without its frozen parts."""
    frozen = tuple(f"{part}." for part in method.frozen)
    return {name: tensor for name, tensor in tensors_of(method).items() if not name.startswith(frozen)}


def frozen_hash(method: Learner) -> str:
    """A hash of the frozen parts, which are not in checkpoints."""
    digest = hashlib.sha256()
    for part in method.frozen:
        for name, tensor in method.get_submodule(part).state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def load_changing_state(method: Learner, state: Mapping[str, Tensor]) -> None:
    """Restore what `changing_state` returned."""
    put_back(changing_state(method), state)


def put_back(here: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Copy a stored state into these tensors, in place: shared and tied tensors stay so."""
    assert here.keys() == state.keys(), sorted(here.keys() ^ state.keys())
    for name, tensor in here.items():
        tensor.copy_(state[name])


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove those that are no longer needed."""
    step = int(checkpoint.facts["step"])
    with new_folder(_place(folder, step)) as part:
        _save(checkpoint.state, part / STATE)
        _save(checkpoint.optimizer, part / OPTIMIZER)
        hashes = {name: sha256(part / name) for name in (STATE, OPTIMIZER)} | {FACTS: _digest(checkpoint.facts)}
        (part / FACTS).write_text(json.dumps({**checkpoint.facts, "sha256": hashes}, indent=1), "utf-8")
    _tidy(folder, step)


def write_best(folder: Path, step: int, state: Mapping[str, Tensor]) -> dict[str, str]:
    """Store the best encoder; returns its entry in a checkpoint."""
    target = folder / f"best-{step:08d}.safetensors"
    with new_file(target) as part:
        _save(state, part)
    return {"file": target.name, "sha256": sha256(target)}


def read_best(folder: Path, best: Mapping[str, str]) -> dict[str, Tensor]:
    """The weights that `write_best` stored."""
    path = folder / best["file"]
    if not path.is_file() or sha256(path) != best["sha256"]:
        problem, fix = "the file is not what was written", "run the same command again: an earlier state is used"
        raise DamagedFile(str(path), problem, "the best weights", fix)
    state: dict[str, Tensor] = load_file(path)
    return state


def newest_checkpoint(folder: Path, log: Callable[[str], None], most: float = math.inf) -> Checkpoint | None:
    """The newest valid checkpoint of at most `most` steps.

    A damaged one is logged and removed, so that it does not count as one of the two.
    """
    for checkpoint in sorted((place for place in folder.glob(PLACES) if _step(place) <= most), reverse=True):
        try:
            return _read(folder, checkpoint)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            log(f"{checkpoint.name} is damaged ({error}): going back to the checkpoint before it")
            if not isinstance(error, PermissionError):
                shutil.rmtree(checkpoint, ignore_errors=True)
    return None


def _read(folder: Path, place: Path) -> Checkpoint:
    facts = json.loads((place / FACTS).read_text("utf-8"))
    hashes = facts.pop("sha256")
    if hashes.pop(FACTS) != _digest(facts):
        raise ValueError(f"{FACTS} is not what was written")
    best = facts.get("best")
    files = {place / name: digest for name, digest in hashes.items()}
    if best:
        if (name := Path(best["weights"]["file"])).name != str(name):
            raise ValueError(f"{name} leads out of the folder")
        files[folder / name] = best["weights"]["sha256"]
    for path, digest in files.items():
        if sha256(path) != digest:
            raise ValueError(f"{path.name} is not what was written")
    return Checkpoint(load_file(place / STATE), load_file(place / OPTIMIZER), facts)


def _digest(facts: Mapping[str, Any]) -> str:
    """A hash of plain values, whatever their layout in a file."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint, valid or not; -1 if there is none."""
    return max(map(_step, folder.glob(PLACES)), default=-1)


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def _step(place: Path) -> int:
    return int(place.name.removeprefix("step-"))


def _save(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors: the format needs each one contiguous and separate."""
    save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)


def _tidy(folder: Path, step: int) -> None:
    """Remove all but the newest checkpoints, best encoders that none of them names, and half-written files.

    A checkpoint ahead of this step is one that the run could not resume from.
    """
    places = sorted(folder.glob(PLACES), reverse=True)
    kept = [place for place in places if place <= _place(folder, step)][:KEPT]
    named = set()
    for place in kept:
        best = json.loads((place / FACTS).read_text("utf-8")).get("best")
        named |= {best["weights"]["file"]} if best else set()
    bests = [path for path in [*folder.glob("best-*"), *folder.glob(".best-*")] if path.name not in named]
    for path in [*(place for place in places if place not in kept), *folder.glob(".step-*"), *bests]:
        remove(path)
