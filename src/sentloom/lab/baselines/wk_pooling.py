"""SBERT-WK (Wang and Kuo, 2020): pool a sentence by how the states of its tokens change over the layers.

A token has a state in each of K layers. Its word vector is their weighted mean: a layer's weight grows the less it
agrees with the layers around it (the inverse of its mean cosine with them), and the more of it lies outside their span
(novelty). The sentence is the weighted mean of its words: a token's weight is the variance of the cosines between
adjacent layers. All of this is computed from each token's K x K cosines, in float64.
"""

from pathlib import Path

import torch
from torch import Tensor

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.heads import normalize
from sentloom.encoder.packing import Pack, by_run
from sentloom.encoder.pooling import Pooling
from sentloom.errors import ModelError

FIRST_LAYER = 4  # in models of six or more blocks
FEWEST = 3  # layers; with fewer, the variance of the cosines of adjacent layers is meaningless
WINDOW = 2  # layers on each side
LEAST_ALIGNMENT = 0.01  # bounds the weight of layers that point away from their neighbours
RIDGE = 1e-10  # avoids a division by zero for equal layers; changes no weight by more than 1e-5


class WkEncoder(Encoder):
    """An Encoder with WK pooling; `wk@4,5,6` pools these layers."""

    def save(self, folder: str | Path, *, golden: bool = True) -> None:
        """Raise a ModelError: an Encoder would be saved without its pooling."""
        problem = "a model with WK pooling cannot be saved: sentence-transformers has no module for it"
        raise ModelError(str(folder), problem, "", "score it by name")

    def _vectors(self, packed: Pack, raw: bool = False) -> Tensor:
        states = torch.stack(self.backbone.states(packed, self.pooling.layers), dim=1)  # (T, K, d)
        words, salience = (by_run(x, packed.runs) for x in words_of(states.double()))
        vectors = torch.cat(list(map(sentences_of, words, salience))).to(states.dtype)
        return normalize(vectors) if self.unit_length and not raw else vectors


def wk_pooling(base: Encoder) -> WkEncoder:
    """Return an encoder with WK pooling that shares the base's backbone; the heads, made for its pooling, are left out.

    It pools layer 4, as in the paper, and all later ones; in models with fewer than six blocks, the last three layers.
    """
    last = base.backbone.num_layers
    first = max(0, min(FIRST_LAYER, last + 1 - FEWEST))
    pooling = Pooling("wk", tuple(range(first, last + 1)))
    encoder = WkEncoder(base.backbone, base.tokens, pooling=pooling, unit_length=base.unit_length, prompts=base.prompts)
    return encoder.eval()


def words_of(states: Tensor) -> tuple[Tensor, Tensor]:
    """Reduce states (T, K, d) to one vector per token, (T, d), and its unnormalised weight in the sentence, (T,)."""
    unit = normalize(states)
    cosines = unit @ unit.transpose(1, 2)  # (T, K, K)
    words = (layer_weights(cosines)[:, :, None] * states).sum(dim=1)
    return words, cosines.diagonal(offset=1, dim1=1, dim2=2).var(dim=1, correction=0)


def layer_weights(cosines: Tensor) -> Tensor:
    """Return the weight (T, K) of each layer in its token's vector, from the cosines (T, K, K) between layers."""
    count = cosines.shape[1]
    alignment, novelty = [], []
    for layer in range(count):
        near = [other for other in range(count) if 0 < abs(other - layer) <= WINDOW]
        alignment.append(cosines[:, layer, near].mean(dim=1))
        novelty.append(_outside(cosines[:, [*near, layer]][:, :, [*near, layer]]))
    away = 1 / torch.stack(alignment, dim=1).clamp(min=LEAST_ALIGNMENT)
    return (_shares(away) + _shares(torch.stack(novelty, dim=1))) / 2


def _outside(cosines: Tensor) -> Tensor:
    """Return how much of the last of m unit vectors lies outside the span of the others, (T,), from cosines (T, m, m).

    This is the last diagonal entry of R in a QR factorisation of the vectors; R is also the Cholesky factor of their
    cosines, which are far fewer numbers.
    """
    ridge = RIDGE * torch.eye(cosines.shape[1], dtype=cosines.dtype, device=cosines.device)
    return torch.linalg.cholesky(cosines + ridge)[:, -1, -1]


def sentences_of(words: Tensor, salience: Tensor) -> Tensor:
    """Average word vectors (n, L, d) with weights (n, L) to (n, d), without the last token, which is special."""
    kept = max(1, words.shape[1] - 1)
    return (_shares(salience[:, :kept])[:, :, None] * words[:, :kept]).sum(dim=1)


def _shares(weights: Tensor) -> Tensor:
    """Scale rows to sum to 1; a row of zeros becomes uniform."""
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total, 1 / weights.shape[1])
