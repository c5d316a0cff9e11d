"""What all trainings of a language model share: the result is the model itself."""

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


COARSE = 8  # targets are grouped by length in steps of this many tokens, then by the length of the source


@dataclass(frozen=True)
class Instance:
    """A source and its target, as token ids; `judged` if the target is a judgement."""

    source: Ids
    target: Ids
    judged: bool


def labelled(batch: Batch) -> list[tuple[str, str, str]]:
    """(premise, hypothesis, kind) of a batch's rows. Neutral rows are not used."""
    if "negatives" in batch.texts:  # triplets
        columns = zip(*(batch.texts[name] for name in ("anchor", "positive", "negatives")), strict=True)
        return [
            row
            for anchor, positive, negatives in columns
            for row in [(anchor, positive, ENTAILMENT), *((anchor, one, CONTRADICTION) for one in negatives)]
        ]
    rows = zip(batch.texts["premise"], batch.texts["hypothesis"], batch.labels, strict=True)
    return [(premise, hypothesis, kind) for premise, hypothesis, kind in rows if kind in (ENTAILMENT, CONTRADICTION)]


def instances(model: LanguageModel, batch: Batch) -> list[Instance]:
    """Two per labelled row, so four per triplet: write the hypothesis, and judge whether it follows."""
    rows = labelled(batch)
    prompts: dict[str, list[Ids]] = {kind: model.prompt_ids(model.wording.prompt(kind)) for kind in NLI_KINDS}
    judge = model.judge_ids
    verdicts = {ENTAILMENT: model.target_ids(model.wording.true), CONTRADICTION: model.target_ids(model.wording.false)}
    premises, hypotheses = (model.sentences([row[side] for row in rows]) for side in (0, 1))
    targets = model.targets([row[1] for row in rows])
    found = []
    for premise, hypothesis, target, (_, _, kind) in zip(premises, hypotheses, targets, rows, strict=True):
        found.append(Instance(model.framed(prompts[kind], [premise]), model.closed(target), judged=False))
        found.append(Instance(model.framed(judge, [premise, hypothesis]), verdicts[kind], judged=True))
    return found


def losses(model: LanguageModel, some: Sequence[Instance]) -> Iterator[tuple[list[Instance], Tensor, Tensor]]:
    """In groups of similar length: the instances, the summed cross-entropy of each, and their first logits."""
    order = sorted(some, key=lambda one: (len(one.target) // COARSE, len(one.source)))
    for at in range(0, len(order), model.GROUP):
        group = order[at : at + model.GROUP]
        logits = model.target_logits(
            [one.source for one in group], [one.target for one in group]
        ).float()  # (tokens, V)
        tokens = torch.tensor([token for one in group for token in one.target], device=logits.device)
        lengths = torch.tensor([len(one.target) for one in group], device=logits.device)
        each = F.cross_entropy(logits, tokens, reduction="none")
        of_row = torch.arange(len(group), device=logits.device).repeat_interleave(lengths)
        yield group, each.new_zeros(len(group)).index_add(0, of_row, each), logits[lengths.cumsum(dim=0) - lengths]


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
        return max(1.0, sum(len(one.target) * self._share(one) for one in instances(self.model, batch)))

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over all instances of these rows."""
        total = next(self.model.parameters()).new_zeros(())
        for group, each, _ in losses(self.model, instances(self.model, batch)):
            total = total + (each * each.new_tensor([self._share(one) for one in group])).sum()
        return total

    def _share(self, one: Instance) -> float:
        return self.options.judge_weight if one.judged else 1.0
