"""IS-BERT: the features of a sentence's n-grams should tell it from the other sentences of the batch.

Zhang, He, Liu, Lim and Bing, *An Unsupervised Sentence Embedding Method by Mutual Information Maximization*, EMNLP
2020, the main baseline of BSL. Symbols: h_t are the encoder's token states, F_t the features of the n-grams around
token t by convolutions over windows of several sizes, E their mean over the sentence, which is its vector.

As in the official code, the convolutions have no activation. The windows wrap around at a sentence's ends, where the
code pads with zeros: then E is a linear map of the mean of h_t, and the trained encoder is mean pooling and a Dense.
"""

from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.losses import local_global_jsd
from sentloom.methods.method import Embeddings, Method, Options
from sentloom.methods.registry import read_presets

Window = Annotated[int, Field(ge=1)]


class IsBertOptions(Options):
    """The official code's: three windows, 256 features of each."""

    windows: Annotated[tuple[Window, ...], Field(min_length=1)] = (1, 3, 5)  # in tokens; odd ones are centred
    filters: int = Field(256, ge=1)


class IsBert(Method):
    """Minus the Jensen-Shannon bound on I(F; E): softplus(-F_t.E_x) + softplus(F_t.E_y), y another sentence than x."""

    NAME = "is-bert"
    Options = IsBertOptions
    options: IsBertOptions
    PRESETS = read_presets(__file__)
    POOLING = "mean"

    def __init__(self, encoder: Encoder, options: IsBertOptions) -> None:
        super().__init__(encoder, options)
        encoder.heads = nn.Sequential()  # the convolutions read token states
        width, count = encoder.backbone.width, len(options.windows)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, options.filters, size) for size in options.windows)
        head = Projection(width, count * options.filters).requires_grad_(False)
        encoder.heads.append(head)
        self.after_step()

    def embed(self, batch: Batch) -> Embeddings:
        """The states h, (n, L, d), padded to the encoder's length, and the number of tokens, (n,)."""
        ids = self.encoder.tokenize(batch.first)
        lengths = torch.tensor([len(row) for row in ids], device=self.encoder.device)
        places = [torch.arange(len(row)).numpy() for row in ids]
        states = self.encoder.token_states(ids, places)
        padded = states.new_zeros(len(ids), self.encoder.tokens.max_length, states.shape[1])
        padded[real(lengths, padded.shape[1])] = states
        return padded, lengths

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The bound on the mutual information, negated."""
        h, lengths = embeddings
        mask = real(lengths, h.shape[1])
        local = self.features(h, lengths)  # (n, L, f)
        whole = (local * mask[..., None]).sum(dim=1) / lengths[:, None]  # E, (n, f)
        owners = torch.arange(len(h), device=h.device)[:, None].expand_as(mask)[mask]
        return local_global_jsd(local[mask] @ whole.T, owners)

    def features(self, h: Tensor, lengths: Tensor) -> Tensor:
        """F, (n, L, f): every window around token t, which wraps around at the ends of the sentence."""
        places = torch.arange(h.shape[1], device=h.device)
        parts = []
        for kernel, bias in self.kernels():
            part = bias.expand(*h.shape[:2], -1)
            for at in range(kernel.shape[2]):
                around = (places + at - kernel.shape[2] // 2)[None, :] % lengths[:, None]  # (n, L)
                part = part + h.gather(1, around[..., None].expand_as(h)) @ kernel[..., at].T
            parts.append(part)
        return torch.cat(parts, dim=-1)

    def kernels(self) -> list[tuple[Tensor, Tensor]]:
        """The weights (f, d, size) and biases (f,) of the convolutions."""
        parts: list[Any] = [*self.convolutions]
        return [(part.weight, part.bias) for part in parts]

    @torch.no_grad()
    def after_step(self) -> None:
        """Bring the encoder's head up to date: the mean of F is the sum of a kernel's weights times the mean of h."""
        head: Any = self.encoder.heads[-1]
        head.linear.weight.copy_(torch.cat([kernel.sum(dim=2) for kernel, _ in self.kernels()]))
        head.linear.bias.copy_(torch.cat([bias for _, bias in self.kernels()]))


def real(lengths: Tensor, longest: int) -> Tensor:
    """(n, longest): which places are tokens, not padding."""
    return torch.arange(longest, device=lengths.device)[None, :] < lengths[:, None]
