"""How long texts are in an encoder's tokens, and the length that covers most of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.tokens import ROLES, Prompt, prompt_for

COVERED = 0.95  # of the texts, at least, by the length that `covering_length` chooses
WORTH_CUTTING = 0.9  # of the tokens are left at most: otherwise cutting the longest texts saves too little to pay
SHORTEST = 16  # tokens: a shorter limit saves nothing


@dataclass(frozen=True)
class Cut:
    """How many of some texts are cut at a length."""

    length: int
    texts: int
    cut: int

    def __str__(self) -> str:
        share = f"{self.cut / max(1, self.texts):.1%}"
        return f"{share} of the texts are cut at {self.length} tokens" if self.cut else ""


def covering_length(encoder: Encoder, texts: Sequence[str]) -> int:
    """The smallest length, special tokens and prompt included, that cuts at most 5% of the texts.

    If that saves less than a tenth of all tokens, no text is cut. It is never above the encoder's own maximum.
    """
    return _covering(token_counts(encoder, texts), encoder.tokens.max_length)


def covering_cut(encoder: Encoder, texts: Sequence[str]) -> tuple[Cut, float]:
    """How many texts the covering length cuts, and how many tokens a text has on average after that."""
    counts = token_counts(encoder, texts)
    length = _covering(counts, encoder.tokens.max_length)
    return _cut(counts, length), float(np.minimum(counts, length).mean()) if len(counts) else 0.0


def count_cut(encoder: Encoder, texts: Sequence[str]) -> Cut:
    """How many of the texts the encoder's maximum length cuts."""
    return _cut(token_counts(encoder, texts), encoder.tokens.max_length)


def _covering(counts: np.ndarray, longest: int) -> int:
    ordered = np.sort(counts)
    covered = int(ordered[max(0, math.ceil(COVERED * len(ordered)) - 1)]) if len(ordered) else SHORTEST
    if np.minimum(counts, covered).sum() > WORTH_CUTTING * np.minimum(counts, longest).sum():
        covered = int(ordered[-1])
    return min(max(covered, SHORTEST), longest)


def _cut(counts: np.ndarray, length: int) -> Cut:
    return Cut(length, len(counts), int((counts > length).sum()))


def token_counts(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """The tokens of each text before any is cut, (n,), with special tokens and the longest prompt of any role."""
    prompts = {prompt_for(encoder.prompts, role) for role in ROLES}
    return np.max([_counts(encoder, texts, prompt) for prompt in prompts], axis=0)


def _counts(encoder: Encoder, texts: Sequence[str], prompt: Prompt) -> np.ndarray:
    tokens = encoder.tokens
    around = len(tokens.specials.before) + len(tokens.suffix_ids(prompt.suffix)) + len(tokens.specials.after)
    return np.array([len(ids) + around for ids in tokens.bare([prompt.prefix + text for text in texts])], np.int64)
