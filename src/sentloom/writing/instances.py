"""Training instances from NLI data: write a sentence, and judge it, each as source and target (GenSE, 3.1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.nli import CONTRADICTION, ENTAILMENT
from sentloom.writing.language_model import Ids, LanguageModel
from sentloom.writing.prompts import NLI_KINDS

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
