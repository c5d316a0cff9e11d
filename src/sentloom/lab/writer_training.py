"""Train a language model: any on NLI data to write and to judge, a text-to-text model on raw sentences.

FOLDER/model/         the model, a transformers folder with its prompts
      /adapter/       with `lora`, the adapters alone, as peft reads them
      /log.jsonl      the journal
      /checkpoints/   only while it runs
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.nli import NEUTRAL
from sentloom.data.shapes import Shape, text_columns
from sentloom.encoder.lora import add_adapters, save_adapters
from sentloom.encoder.packing import set_dropout
from sentloom.errors import InputError
from sentloom.lab.denoising import Denoising, DenoisingOptions
from sentloom.lab.synthesizer import PerplexityBy, Synthesizer, SynthesizerOptions, TextLearner, instances, losses
from sentloom.progress import progress
from sentloom.training import Selection, Settings, train
from sentloom.training.health import read_journal
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.models import open_model
from sentloom.writing.text_to_text import TextToText

Log = Callable[[str], None]
SLICES = 10_000  # premises are held out by their hash, so that the choice does not depend on the other rows
ROWS = 256  # read at a time
OFFICIAL_BATCH = 64  # sentences that the official code writes at a time


def train_synthesizer(
    base: str, data: Dataset, options: SynthesizerOptions, settings: Settings, **run: Any
) -> dict[str, Any]:
    """Train a synthesizer on NLI data, triplets or labelled pairs; returns how it went. `run` goes to `_train`."""
    learned, held_out = apart(data, options.held_out)
    lengths = {"source_length": options.source_length, "target_length": options.target_length}
    load = partial(open_model, base, wording=options.wording, **lengths)
    model = load()
    few = held_out.select(np.arange(len(held_out)) < options.measured)
    selection = Selection(lambda model: measure(model, few, options.perplexity_by).score, options.every)
    facts = _train(Synthesizer(model, options), learned, settings, selection, **run)
    measured = {}
    with progress("measuring", 2, "models") as advance:
        for name, version in (("before", load()), ("after", model)):
            scores = measure(version, held_out, options.perplexity_by)
            measured[name] = {**asdict(scores), "score": scores.score}
            advance(1)
    return {**facts, "held_out": measured}


def train_denoising(
    base: str, data: Dataset, options: DenoisingOptions, settings: Settings, **run: Any
) -> dict[str, Any]:
    """Train a text-to-text model to restore sentences with masked spans. `run` goes to `_train`."""
    model = TextToText.load(base, source_length=options.source_length, target_length=options.target_length)
    facts = _train(Denoising(model, options), data, settings, **run)
    losses = [line["loss"] for line in read_journal(run["folder"]) if "loss" in line]  # per token
    return {**facts, "losses": [losses[0], losses[-1]] if losses else []}


def apart(data: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """Split the rows into training and held-out rows: no premise is in both. Neutral rows are in neither."""
    premise = "premise" if data.shape is Shape.NLI else "anchor"
    if data.shape not in Synthesizer.SHAPES:
        expected = " or ".join(Synthesizer.SHAPES)
        raise InputError(data.files[0], f"its shape is {data.shape}", expected, "give NLI data")
    taught = np.ones(len(data), bool)
    if data.shape is Shape.NLI:
        taught = np.array([label != NEUTRAL for label in data.column("label").to_pylist()])
    keys = text_keys(data.column(premise).to_pylist())
    held_out = keys % SLICES < round(share * SLICES)
    for rows, what in ((taught & ~held_out, "to learn from"), (taught & held_out, "held out")):
        if not rows.any():
            fix = "give more data, or another share `held_out`"
            raise InputError(data.files[0], f"it has no rows {what}", "at least one", fix)
    neutral = {"neutral rows": int((~taught).sum())} if not taught.all() else {}
    learned = data.select(taught & ~held_out)
    return replace(learned, skipped={**learned.skipped, **neutral}), data.select(taught & held_out)


def _train(
    method: TextLearner,
    data: Dataset,
    settings: Settings,
    selection: Selection | None = None,
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator | None = None,
    log: Log = lambda text: None,
) -> dict[str, Any]:
    """Run the loop and save the model."""
    if settings.dropout is not None:
        set_dropout(method.scored.model, settings.dropout)
    torch.manual_seed(seed)
    if settings.lora is not None:
        add_adapters(method.scored.model, settings.lora.rank, settings.lora.alpha)
    accelerator = accelerator or Accelerator()
    where: dict[str, Any] = {"folder": folder, "accelerator": accelerator, "title": method.NAME, "log": log}
    with fast_attention(method.scored.model, accelerator):
        outcome = train(method, data, settings, seed=seed, selection=selection, **where)
    if accelerator.is_main_process:
        method.save(folder / "model")
        if settings.lora is not None:
            save_adapters(method.scored.model, folder / "adapter")
    plain: dict[str, Any] = json.loads(json.dumps(asdict(outcome)))  # as a later run will read it
    return {"outcome": plain, "seconds": plain["seconds"], "fingerprint": method.finished().sha256}


@contextmanager
def fast_attention(model: PreTrainedModel, accelerator: Accelerator) -> Iterator[None]:
    """Do without torch's fused attention in bf16 on a CPU: it takes a quarter of a step, most of it backwards."""
    before = model.config._attn_implementation
    slow = accelerator.device.type == "cpu" and accelerator.mixed_precision == "bf16" and before != "eager"
    if slow:
        model.set_attn_implementation("eager")
    try:
        yield
    finally:
        if slow:
            model.set_attn_implementation(before)


@dataclass(frozen=True)
class WriterScores:
    """Measured on held-out rows."""

    accuracy: float  # of the judgements, from 0 to 1
    perplexity: float  # per token of the sentences to write
    rows: int  # labelled sentences

    @property
    def score(self) -> float:
        """Accuracy in points minus ten times the perplexity."""
        return 100 * self.accuracy - 10 * self.perplexity


def measure(model: LanguageModel, data: Dataset, by: PerplexityBy = "token") -> WriterScores:
    """Judge and write every row of held-out data, triplets or NLI."""
    right = judged = 0
    written: list[tuple[float, int]] = []  # the loss and the tokens of every sentence, in order
    true, false = model.verdict_ids
    with _still(model):
        for start in range(0, len(data), ROWS):
            rows = instances(model, rows_of(data, start, start + ROWS))
            written_losses: dict[int, tuple[float, int]] = {}
            for group, summed, first in losses(model, rows):
                for instance, loss, logits in zip(group, summed.tolist(), first, strict=True):
                    if instance.judged:
                        judged += 1
                        right += bool(logits[true] > logits[false]) == (instance.target[0] == true)
                    else:
                        written_losses[id(instance)] = loss, len(instance.target)
            written += [written_losses[id(instance)] for instance in rows if not instance.judged]
    return WriterScores(right / max(1, judged), perplexity(written, by), judged)


def perplexity(written: Sequence[tuple[float, int]], by: PerplexityBy = "token") -> float:
    """Compute exp of the mean loss per token, over all sentences; by batch, of the mean over the official batches."""
    size = len(written) if by == "token" else OFFICIAL_BATCH
    batches = [written[start : start + size] for start in range(0, len(written), max(1, size))]
    means = [sum(loss for loss, _ in batch) / max(1, sum(tokens for _, tokens in batch)) for batch in batches]
    return math.exp(min(sum(means) / max(1, len(means)), 100.0))


def rows_of(data: Dataset, start: int, stop: int) -> Batch:
    """Consecutive rows of a dataset, as a batch."""
    rows = np.arange(start, min(stop, len(data)))
    cells = data.take(rows)
    texts = {name: cells[name] for name in text_columns(data.shape)}
    return Batch(texts, rows, np.arange(len(rows)), (0, 0), cells.get("label", ()))


@contextmanager
def _still(model: LanguageModel) -> Iterator[None]:
    """Without dropout and gradients; afterwards as before."""
    before = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(before)
