"""How tokens are sampled: from which of them, and with random numbers that depend on the text, not on the batch."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15  # the step of SplitMix64
FIRST_WIDTH = 256  # the nucleus is searched among this many most likely tokens,
WIDER = 16  # then among this many times more

Keys: TypeAlias = NDArray[np.uint64]


class Sampling(BaseModel):
    """How a text is written.

    Tokens are sampled among the most likely ones that together have probability `top_p`, and among the `top_k` most
    likely unless that is 0 (GenSE's official code has 50); `greedy` takes the most likely one. A text has at most
    `length` tokens, including its end; `candidates` texts are written per prompt. Without a `temperature` the writer
    has its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_p: float = Field(default=0.9, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    temperature: float | None = Field(default=None, gt=0)
    greedy: bool = False
    candidates: int = Field(default=1, ge=1)
    length: int = Field(default=64, ge=1)
    seed: int = Field(default=1, ge=0, lt=2**32)

    @model_validator(mode="after")
    def _one_likeliest(self) -> "Sampling":
        if self.greedy and self.candidates > 1:
            raise ValueError(f"greedy would write the same text {self.candidates} times: set candidates to 1")
        return self

    @property
    def heat(self) -> float:
        """The temperature; 1 if none is given."""
        return self.temperature or 1.0


class Draw:
    """Gumbel-max sampling: the maximum of logits plus Gumbel noise is a sample from their softmax.

    The noise of a token is a hash of the text's key, the position and the token: the same in any batch. Batches only
    affect the last digits of the logits, through padding; that changes a text only if two tokens are that close.
    """

    def __init__(self, sampling: Sampling, keys: Keys) -> None:
        """`keys` (n,) belong to the rows of the batch."""
        self._sampling, self._keys = sampling, keys

    def noisy(self, scores: Tensor, position: int, live: NDArray[np.int64] | None = None) -> Tensor:
        """Scores (n, V) with the noise of a position, in float64; minus infinity for tokens that may not be sampled.

        `live` are the rows of the batch that the scores belong to, by default all.
        """
        keys = self._keys if live is None else self._keys[live]
        rows, words = (scores >= least_kept(scores, self._sampling)).nonzero(as_tuple=True)
        of_row = _absorb(keys, np.full(len(keys), position, np.uint64))
        noise = gumbel(of_row[rows.cpu().numpy()], words.cpu().numpy().astype(np.uint64))
        drawn = torch.full_like(scores, -torch.inf, dtype=torch.float64)
        drawn[rows, words] = scores[rows, words].double() / self._sampling.heat + torch.from_numpy(noise).to(
            rows.device
        )
        return drawn


def least_kept(scores: Tensor, sampling: Sampling, width: int = FIRST_WIDTH) -> Tensor:
    """The smallest score (n, 1) of each row that may be sampled, as in transformers' temperature, top-k and top-p.

    A nucleus is usually small, so the whole vocabulary is sorted only for rows where it is not.
    """
    if not sampling.top_k and sampling.top_p == 1:
        return scores.new_full((len(scores), 1), -torch.inf)
    width = min(sampling.top_k or width, scores.shape[1])
    best = scores.topk(width).values  # (n, width), likeliest first
    shared_by = best if sampling.top_k else scores
    total = (shared_by.double() / sampling.heat).logsumexp(dim=1, keepdim=True)
    chances = (best.double() / sampling.heat - total).exp()
    through = chances.cumsum(dim=1)
    kept = ((through - chances) < sampling.top_p).sum(dim=1, keepdim=True)  # until more likely tokens reach top_p
    least = best.gather(1, kept.clamp(min=1) - 1)
    short = through[:, -1] < sampling.top_p
    if not sampling.top_k and width < scores.shape[1] and short.any():
        least[short] = least_kept(scores[short], sampling, width * WIDER)
    return least


def sampling_keys(seed: int, names: Sequence[tuple[int, ...]]) -> Keys:
    """A key (n,) per text, from the seed and the numbers that identify it: its source, kind and candidate."""
    keys = _absorb(np.zeros(len(names), np.uint64), np.full(len(names), seed, np.uint64))
    for numbers in zip(*names, strict=True):
        keys = _absorb(keys, np.array(numbers, np.uint64))
    return keys


def gumbel(keys: Keys, words: Keys) -> NDArray[np.float64]:
    """Gumbel noise (m,): for each key, the output of SplitMix64, seeded with it, at the token's position."""
    bits = _mixed(keys + (words + np.uint64(1)) * np.uint64(GOLDEN)) >> np.uint64(12)
    uniform = (bits.astype(np.float64) + 0.5) * 2.0**-52  # neither 0 nor 1
    return -np.log(-np.log(uniform))


def _absorb(keys: Keys, numbers: Keys) -> Keys:
    return _mixed((keys ^ numbers) + np.uint64(GOLDEN))


def _mixed(numbers: Keys) -> Keys:
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014): every input bit affects every output bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
