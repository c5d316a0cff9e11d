"""SBERT-WK (Wang and Kuo, 2020): a sentence's vector from how the states of its tokens change over the layers.

A token has a state in each of K layers. Its word vector is their weighted mean: a layer weighs more the less it agrees
with the layers around it (the inverse of its mean cosine with them), and the more of it lies outside of what they span
(novelty). The sentence is the weighted mean of its words: a token weighs as the variance of the cosines between
neighbouring layers. All of this follows from each token's K x K cosines, taken in float64.
"""

from pathlib import Path

import torch
from torch import Tensor

from sentloom.baselines.baseline import refuse_to_save
from sentloom.encoder.encoder import Encoder
from sentloom.encoder.heads import normalize
from sentloom.encoder.packing import Pack, by_run
from sentloom.encoder.pooling import Pooling
from sentloom.errors import InputError

FIRST_LAYER = 4  # of models of six blocks and more
FEWEST = 3  # layers: of fewer, the variance of neighbours' cosines says nothing
WINDOW = 2  # layers to each side
LEAST_ALIGNMENT = 0.01  # layers that point away from their neighbours would get a weight without bound, or below 0
RIDGE = 1e-10  # keeps equal layers from a division by zero; it moves no weight by more than 1e-5


class WkEncoder(Encoder):
    """An Encoder with this pooling instead of its own: `wk@4,5,6` reads these layers."""

    name: str = "wk"

    def save(self, folder: str | Path) -> None:
        """Refused."""
        refuse_to_save(self.name, folder, "for whose pooling sentence-transformers has no module")

    def _vectors(self, one: Pack, raw: bool = False) -> Tensor:
        states = torch.stack(self.backbone.states(one, self.pooling.layers), dim=1)  # (T, K, d)
        words, salience = (by_run(x, one.runs) for x in words_of(states.double()))
        vectors = torch.cat(list(map(sentences_of, words, salience))).to(states.dtype)
        return normalize(vectors) if self.unit_length and not raw else vectors


def wk_pooling(base: Encoder, first_layer: int | None = None, *, name: str = "wk") -> WkEncoder:
    """The base's backbone, which is shared, under this pooling; its heads, made for another, are left out.

    `first_layer` is by default 4, as in the paper; in models of fewer than six blocks, the last three layers are read.
    """
    last = base.backbone.num_layers
    first = max(0, min(FIRST_LAYER, last + 1 - FEWEST)) if first_layer is None else first_layer
    if not 0 <= first < last:
        raise InputError("first_layer", str(first), f"0 to {last - 1}, a layer before the last", "choose another")
    pooling = Pooling("wk", tuple(range(first, last + 1)))
    encoder = WkEncoder(base.backbone, base.tokens, pooling=pooling, unit_length=base.unit_length, prompts=base.prompts)
    encoder.name = name
    return encoder.eval()


def words_of(states: Tensor) -> tuple[Tensor, Tensor]:
    """From states (T, K, d) to a vector a token, (T, d), and its weight in the sentence, (T,), not yet a share."""
    unit = normalize(states)
    cosines = unit @ unit.transpose(1, 2)  # (T, K, K)
    words = (layer_weights(cosines)[:, :, None] * states).sum(dim=1)
    return words, cosines.diagonal(offset=1, dim1=1, dim2=2).var(dim=1, correction=0)


def layer_weights(cosines: Tensor) -> Tensor:
    """The share (T, K) of each layer in its token's vector, from the cosines (T, K, K) between layers."""
    count = cosines.shape[1]
    alignment, novelty = [], []
    for layer in range(count):
        near = [other for other in range(count) if 0 < abs(other - layer) <= WINDOW]
        alignment.append(cosines[:, layer, near].mean(dim=1))
        novelty.append(_outside(cosines[:, [*near, layer]][:, :, [*near, layer]]))
    away = 1 / torch.stack(alignment, dim=1).clamp(min=LEAST_ALIGNMENT)
    return (_shares(away) + _shares(torch.stack(novelty, dim=1))) / 2


def _outside(cosines: Tensor) -> Tensor:
    """How much of the last of some unit vectors lies outside the span of the others, (T,), from cosines (T, m, m).

    That is the last number on the diagonal of R in a QR factorisation of the vectors; R is also the Cholesky factor of
    their cosines, which are far fewer numbers.
    """
    ridge = RIDGE * torch.eye(cosines.shape[1], dtype=cosines.dtype, device=cosines.device)
    return torch.linalg.cholesky(cosines + ridge)[:, -1, -1]


def sentences_of(words: Tensor, salience: Tensor) -> Tensor:
    """From word vectors (n, L, d) and weights (n, L) to (n, d). The last token, a closing mark, is left out."""
    kept = max(1, words.shape[1] - 1)
    return (_shares(salience[:, :kept])[:, :, None] * words[:, :kept]).sum(dim=1)


def _shares(weights: Tensor) -> Tensor:
    """Rows that sum to 1; a row of zeros becomes equal shares."""
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total, 1 / weights.shape[1])
