"""Teach a text-to-text model a language before a task: restore a sentence with masked spans.

This is the infilling of BART (Lewis et al., 2020): each span of tokens becomes one mask, and the whole sentence is the
target. It is meant for models with random weights; a pretrained model does not need it.
"""

import numpy as np
from pydantic import Field
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.lab.synthesizer import Instance, TextLearner, losses
from sentloom.methods import Options
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive, Share
from sentloom.writing.language_model import SOURCE_LENGTH, TARGET_LENGTH, Ids
from sentloom.writing.text_to_text import TextToText


class DenoisingOptions(Options):
    """BART's numbers."""

    share: Share = 0.3  # of a sentence's tokens
    span: Positive = 3.0  # their mean length
    source_length: int = Field(SOURCE_LENGTH, ge=1)
    target_length: int = Field(TARGET_LENGTH, ge=2)


class Denoising(TextLearner):
    """Token cross-entropy of the whole sentence, given the masked one."""

    NAME = "denoising"
    Options = DenoisingOptions
    options: DenoisingOptions
    PRESETS = read_presets(__file__)

    def __init__(self, model: TextToText, options: DenoisingOptions) -> None:
        super().__init__(model, options)
        tokenizer = model.tokenizer
        self.mask = int(tokenizer.unk_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id)

    def weight(self, batch: Batch) -> float:
        """The number of target tokens."""
        return max(1.0, float(sum(len(instance.target) for instance in self.instances(batch))))

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over all sentences of these rows."""
        total = next(self.model.parameters()).new_zeros(())
        for _, summed, _ in losses(self.model, self.instances(batch)):
            total = total + summed.sum()
        return total

    def instances(self, batch: Batch) -> list[Instance]:
        """Every masked sentence with the whole one; spans are drawn row by row."""
        sentences = self.model.bare(batch.first)
        return [
            Instance(
                self.model.framed([[], []], [infilled(ids, self.mask, self.options, batch.random(int(place)))]),
                self.model.closed(ids),
                judged=False,
            )
            for place, ids in zip(batch.places, sentences, strict=True)
        ]


def infilled(ids: Ids, mask: int, options: DenoisingOptions, draw: np.random.Generator) -> Ids:
    """Token ids in which spans are replaced by one mask each, until the share is reached."""
    left = round(options.share * len(ids))
    gone = np.zeros(len(ids), bool)
    while left > 0:
        length = min(left, 1 + int(draw.poisson(options.span - 1 if options.span > 1 else 0)))
        start = int(draw.integers(len(ids)))
        span = slice(start, start + length)
        left -= int((~gone[span]).sum()) or 1
        gone[span] = True
    firsts = gone & ~np.concatenate([[False], gone[:-1]])
    return [mask if firsts[at] else token for at, token in enumerate(ids) if firsts[at] or not gone[at]]
