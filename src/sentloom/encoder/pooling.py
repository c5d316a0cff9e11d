"""Pool the token states of a pack into one vector per sentence.

A pooling is written as a name, optionally with layers: `mean`, `max`, `first` (alias `cls`), `last` (alias
`lasttoken`), `decoder-first`, `mean@1,-1`. Layer 0 is the embedding output, 1 the first block, -1 the last; the states
of several layers are averaged, then pooled. `first-last` is `mean@1,-1` and `last-two` is `mean@-2,-1`. `mask` is the
mask token of a template (`encoder.templates`). `pooler` is the first token followed by BERT's own linear layer and
tanh; when a model is loaded, it becomes `first` and a head.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sentloom.encoder.packing import PackedRun, by_run
from sentloom.errors import InputError

# Each maps a run's states (count, L, d) to (count, d).
POOLERS: dict[str, Callable[[Tensor], Tensor]] = {
    "first": lambda states: states[:, 0],
    "last": lambda states: states[:, -1],
    "mean": lambda states: states.mean(dim=1),
    "max": lambda states: states.amax(dim=1),
}
LAST = "last"  # for causal models: no other token sees the whole sentence
MASK_TOKEN = "mask"  # the mean of the mask tokens, of which a template usually has one
POOLER = "pooler"
DECODER_FIRST = "decoder-first"  # the decoder's state for its start token as the only input; needs a decoder
UNLAYERED = (MASK_TOKEN, POOLER, DECODER_FIRST)  # of the last layer only
ALIASES = {"cls": "first", "lasttoken": "last", "first-last": "mean@1,-1", "last-two": "mean@-2,-1"}


@dataclass(frozen=True)
class Pooling:
    """How a sentence's vector is computed from its token states."""

    how: str = "mean"
    layers: tuple[int, ...] = (-1,)

    @classmethod
    def parse(cls, text: str) -> "Pooling":
        """Parse the written form."""
        how, at, layers = ALIASES.get(text.strip(), text.strip()).partition("@")
        how = ALIASES.get(how, how)
        wrong = how not in POOLERS if at else how not in (*POOLERS, *UNLAYERED)
        if wrong or not re.fullmatch(r"-?\d+(,-?\d+)*", layers if at else "-1"):
            raise InputError(
                "pooling",
                f"{text!r} is not a pooling",
                f"one of {', '.join([*POOLERS, *UNLAYERED, *ALIASES])}, with layers as in mean@0,-1",
                "correct the name or the layers",
            )
        return cls(how, tuple(int(layer) for layer in layers.split(",")) if at else (-1,))

    def __str__(self) -> str:
        return self.how if self.layers == (-1,) else f"{self.how}@{','.join(map(str, self.layers))}"


def pool(how: str, states: Tensor, runs: tuple[PackedRun, ...]) -> Tensor:
    """Pool the states (T, d) of a pack to (n, d), in packed order."""
    pooler = POOLERS[how]
    return torch.cat([pooler(part) for part in by_run(states, runs)])


def pool_at(states: Tensor, chosen: Tensor, runs: tuple[PackedRun, ...]) -> Tensor:
    """The means (n, d) of the states (T, d) that are `chosen` (T,), in packed order; each sentence has some."""
    weights = chosen[:, None].to(states.dtype)
    sums, counts = (torch.cat([part.sum(dim=1) for part in by_run(x, runs)]) for x in (states * weights, weights))
    return sums / counts
