"""Teach a language model to write entailed and contradicting sentences and to judge them, as in GenSE.

What it shares with `denoising` is here too: the method that owns the model, and the loss of sources and targets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.nli import CONTRADICTION, ENTAILMENT
from sentloom.data.shapes import Shape
from sentloom.encoder.lora import without_adapters
from sentloom.methods import Options, TokenMethod
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive, Share
from sentloom.writing.language_model import SOURCE_LENGTH, TARGET_LENGTH, Ids, LanguageModel
from sentloom.writing.writer import NLI_KINDS, Wording

COARSE = 8  # targets are grouped by length in steps of this many tokens, then by the length of the source

PerplexityBy = Literal["token", "batch"]


class TextLearner(TokenMethod):
    """Owns a language model, and trains all of it or its adapters."""

    def __init__(self, model: LanguageModel, options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options  # of the method's own type

    @property
    def scored(self) -> LanguageModel:
        """The model."""
        return self.model

    def finished(self) -> LanguageModel:
        """The model, with adapters added to its weights."""
        return without_adapters(self.model)

    def save(self, folder: Path) -> None:
        """Write the model."""
        self.finished().save(folder)


@dataclass(frozen=True)
class Instance:
    """A source and its target, as token ids; `judged` if the target is a judgement."""

    source: Ids
    target: Ids
    judged: bool


class SynthesizerOptions(Options):
    """The prompts and lengths that the model learns, and how its best weights are selected."""

    wording: Wording = Wording()
    source_length: int = Field(SOURCE_LENGTH, ge=1)  # tokens of each sentence that it reads
    target_length: int = Field(TARGET_LENGTH, ge=2)  # tokens of the sentence that it writes
    judge_weight: Positive = 1.0  # weight of a judgement's tokens relative to those of a sentence; 1 in the paper
    held_out: Share = 0.05  # share of the premises that is not trained on but measured
    measured: int = Field(1000, ge=1)  # held-out rows, at most, that are measured during training
    every: int = Field(500, ge=1)  # steps between measurements
    perplexity_by: PerplexityBy = "token"  # what it is averaged over; batch: as in the official code


class Synthesizer(TextLearner):
    """Token cross-entropy over sentences to write and judgements to give, averaged over their tokens."""

    NAME = "synthesizer"
    Options = SynthesizerOptions
    options: SynthesizerOptions
    SHAPES = (Shape.TRIPLETS, Shape.NLI)
    PRESETS = read_presets(__file__)

    def weight(self, batch: Batch) -> float:
        """The weighted number of tokens to predict."""
        return max(1.0, sum(len(instance.target) * self._share(instance) for instance in instances(self.model, batch)))

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over all instances of these rows."""
        total = next(self.model.parameters()).new_zeros(())
        for group, summed, _ in losses(self.model, instances(self.model, batch)):
            total = total + (summed * summed.new_tensor([self._share(instance) for instance in group])).sum()
        return total

    def _share(self, instance: Instance) -> float:
        return self.options.judge_weight if instance.judged else 1.0


def instances(model: LanguageModel, batch: Batch) -> list[Instance]:
    """Two per labelled row, so four per triplet: write the hypothesis, and judge whether it follows."""
    rows = labelled(batch)
    prompts: dict[str, list[Ids]] = {kind: model.prompt_ids(model.wording.prompt(kind)) for kind in NLI_KINDS}
    judge = model.judge_ids
    verdicts = {ENTAILMENT: model.target_ids(model.wording.true), CONTRADICTION: model.target_ids(model.wording.false)}
    premises, hypotheses = (model.sentences([row[side] for row in rows]) for side in (0, 1))
    targets = model.targets([row[1] for row in rows])
    made = []
    for premise, hypothesis, target, (_, _, kind) in zip(premises, hypotheses, targets, rows, strict=True):
        made.append(Instance(model.framed(prompts[kind], [premise]), model.closed(target), judged=False))
        made.append(Instance(model.framed(judge, [premise, hypothesis]), verdicts[kind], judged=True))
    return made


def labelled(batch: Batch) -> list[tuple[str, str, str]]:
    """(premise, hypothesis, kind) of a batch's rows. Neutral rows are not used."""
    if "negatives" in batch.texts:  # triplets
        columns = zip(*(batch.texts[name] for name in ("anchor", "positive", "negatives")), strict=True)
        return [
            row
            for anchor, positive, negatives in columns
            for row in [(anchor, positive, ENTAILMENT), *((anchor, negative, CONTRADICTION) for negative in negatives)]
        ]
    rows = zip(batch.texts["premise"], batch.texts["hypothesis"], batch.labels, strict=True)
    return [(premise, hypothesis, kind) for premise, hypothesis, kind in rows if kind in (ENTAILMENT, CONTRADICTION)]


def losses(model: LanguageModel, rows: Sequence[Instance]) -> Iterator[tuple[list[Instance], Tensor, Tensor]]:
    """In groups of similar length: the instances, the summed cross-entropy of each, and their first logits."""
    order = sorted(rows, key=lambda instance: (len(instance.target) // COARSE, len(instance.source)))
    for at in range(0, len(order), model.GROUP):
        group = order[at : at + model.GROUP]
        sources, targets = [instance.source for instance in group], [instance.target for instance in group]
        logits = model.target_logits(sources, targets).float()  # (tokens, V)
        tokens = torch.tensor([token for target in targets for token in target], device=logits.device)
        lengths = torch.tensor([len(target) for target in targets], device=logits.device)
        by_token = F.cross_entropy(logits, tokens, reduction="none")
        of_row = torch.arange(len(group), device=logits.device).repeat_interleave(lengths)
        summed = by_token.new_zeros(len(group)).index_add(0, of_row, by_token)
        yield group, summed, logits[lengths.cumsum(dim=0) - lengths]
