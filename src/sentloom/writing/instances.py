"""Training instances from NLI data: write a sentence, and judge it, each as source and target (GenSE, 3.1)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.nli import CONTRADICTION, ENTAILMENT
from sentloom.writing.text_to_text import Ids, TextToText

GROUP = 64  # instances per forward pass, of similar length
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


def instances(model: TextToText, batch: Batch) -> list[Instance]:
    """Two per labelled row, so four per triplet: write the hypothesis, and judge whether it follows."""
    rows = labelled(batch)
    prompts = {use: model.prompt_ids(use) for use in (ENTAILMENT, CONTRADICTION, "judge")}
    verdicts = {ENTAILMENT: model.target_ids(model.wording.true), CONTRADICTION: model.target_ids(model.wording.false)}
    premises, hypotheses = (model.bare([row[side] for row in rows]) for side in (0, 1))
    found = []
    for premise, hypothesis, (_, _, kind) in zip(premises, hypotheses, rows, strict=True):
        found.append(Instance(model.framed(prompts[kind], [premise]), model.closed(hypothesis), judged=False))
        found.append(Instance(model.framed(prompts["judge"], [premise, hypothesis]), verdicts[kind], judged=True))
    return found


def losses(model: TextToText, some: Sequence[Instance]) -> Iterator[tuple[list[Instance], Tensor, Tensor]]:
    """In groups of similar length: the instances, the summed cross-entropy of each, and their first logits."""
    order = sorted(some, key=lambda one: (len(one.target) // COARSE, len(one.source)))
    for at in range(0, len(order), GROUP):
        group = order[at : at + GROUP]
        sources, read = padded([one.source for one in group], model)
        targets, wanted = padded([one.target for one in group], model)
        shifted = torch.cat([torch.full_like(targets[:, :1], model.start), targets[:, :-1]], dim=1)
        with _head_at(model, wanted):
            logits = model.model(
                input_ids=sources, attention_mask=read, decoder_input_ids=shifted
            ).logits  # (tokens, V)
        each = F.cross_entropy(logits.float(), targets[wanted], reduction="none")
        of_row = wanted.nonzero()[:, 0]
        firsts = wanted.sum(dim=1).cumsum(dim=0) - wanted.sum(dim=1)
        yield group, each.new_zeros(len(group)).index_add(0, of_row, each), logits[firsts].float()


@contextmanager
def _head_at(model: TextToText, wanted: Tensor) -> Iterator[None]:
    """The head over the vocabulary, the most expensive part of a small model, skips padding."""
    head = model.model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, states: (states[0][wanted],))
    try:
        yield
    finally:
        hook.remove()


def padded(rows: Sequence[Ids], model: TextToText) -> tuple[Tensor, Tensor]:
    """(n, longest) ids, and a mask of those that are not padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[model.pad] * (longest - len(row))] for row in rows], device=model.model.device)
    lengths = torch.tensor([len(row) for row in rows], device=ids.device)
    return ids, torch.arange(longest, device=ids.device) < lengths[:, None]
