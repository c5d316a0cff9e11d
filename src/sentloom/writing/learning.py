"""Train a text-to-text model: on raw sentences to learn a language, on NLI data to write and to judge.

FOLDER/model/         the model, a transformers folder with its prompts
      /log.jsonl      the journal
      /checkpoints/   only while it runs
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from sentloom.data.batches import text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.nli import NEUTRAL
from sentloom.data.shapes import Shape
from sentloom.encoder.dropout import set_dropout
from sentloom.errors import InputError
from sentloom.methods import TokenMethod
from sentloom.progress import progress
from sentloom.training import Selection, Settings, train
from sentloom.training.journal import read_journal
from sentloom.writing.denoising import Denoising, DenoisingOptions
from sentloom.writing.measure import measure
from sentloom.writing.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.writing.text_to_text import TextToText

Log = Callable[[str], None]
SLICES = 10_000  # premises are held out by their hash, so that the choice does not depend on the other rows


def train_synthesizer(
    base: str,
    data: Dataset,
    options: SynthesizerOptions,
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator | None = None,
    log: Log = lambda text: None,
) -> dict[str, Any]:
    """Train a synthesizer on NLI data, triplets or labelled pairs; returns how it went."""
    accelerator = accelerator or Accelerator()
    learned, held_out = apart(data, options.held_out)
    model = TextToText.load(
        base, wording=options.wording, source_length=options.source_length, target_length=options.target_length
    )
    few = held_out.select(_first(len(held_out), options.measured))
    selection = Selection(lambda kept: measure(kept, few).score, options.every)
    facts = _train(Synthesizer(model, options), learned, settings, seed, folder, accelerator, selection, log)
    measured = {}
    with progress("measuring", 2, "models") as advance:
        for name, one in (("before", TextToText.load(base, **_like(model))), ("after", model)):
            found = measure(one, held_out)
            measured[name] = {**asdict(found), "score": found.score}
            advance(1)
    return {**facts, "held_out": measured}


def train_denoising(
    base: str,
    data: Dataset,
    options: DenoisingOptions,
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator | None = None,
    log: Log = lambda text: None,
) -> dict[str, Any]:
    """Train a text-to-text model to restore sentences with masked spans; returns how it went."""
    accelerator = accelerator or Accelerator()
    model = TextToText.load(base, source_length=options.source_length, target_length=options.target_length)
    facts = _train(Denoising(model, options), data, settings, seed, folder, accelerator, None, log)
    losses = [line["loss"] for line in read_journal(folder) if "loss" in line]  # per token
    return {**facts, "losses": [losses[0], losses[-1]] if losses else []}


def apart(data: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """Split the rows into training and held-out rows: no premise is in both. Neutral rows are in neither."""
    premise = "premise" if data.shape is Shape.NLI else "anchor"
    if data.shape not in Synthesizer.SHAPES:
        wanted = " or ".join(Synthesizer.SHAPES)
        raise InputError(data.files[0], f"data of the shape {data.shape}", wanted, "give NLI data")
    taught = np.ones(len(data), bool)
    if data.shape is Shape.NLI:
        taught = np.array([label != NEUTRAL for label in data.column("label").to_pylist()])
    keys = text_keys(data.column(premise).to_pylist())
    held_out = keys % SLICES < round(share * SLICES)
    for rows, what in ((taught & ~held_out, "to learn from"), (taught & held_out, "held out")):
        if not rows.any():
            raise InputError(data.files[0], f"no rows {what}", "some", "give more data, or another share `held_out`")
    neutral = {"neutral rows": int((~taught).sum())} if not taught.all() else {}
    learned = data.select(taught & ~held_out)
    return replace(learned, skipped={**learned.skipped, **neutral}), data.select(taught & held_out)


def _train(
    method: TokenMethod,
    data: Dataset,
    settings: Settings,
    seed: int,
    folder: Path,
    accelerator: Accelerator,
    selection: Selection | None,
    log: Log,
) -> dict[str, Any]:
    """Run the loop and save the model."""
    if settings.dropout is not None:
        set_dropout(method.kept.model, settings.dropout)
    torch.manual_seed(seed)
    outcome = train(
        method,
        data,
        settings,
        seed=seed,
        folder=folder,
        accelerator=accelerator,
        selection=selection,
        title=method.NAME,
        log=log,
    )
    if accelerator.is_main_process:
        method.save(folder / "model")
    plain: dict[str, Any] = json.loads(json.dumps(asdict(outcome)))  # as a later run will read it
    return {"outcome": plain, "seconds": plain["seconds"], "fingerprint": method.kept.sha256}


def _first(rows: int, most: int) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    return np.arange(rows) < most


def _like(model: TextToText) -> dict[str, Any]:
    return {"wording": model.wording, "source_length": model.source_length, "target_length": model.target_length}
