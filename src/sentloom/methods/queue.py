"""A memory of past vectors, as further negatives. Its buffers are part of a method's state, and so of checkpoints."""

import torch
from torch import Tensor, nn


class Queue(nn.Module):
    """The newest `size` vectors, each with some keys. It starts empty and takes batches of any size, also larger ones.

    `count` says where the next vector goes, and how many there are.
    """

    vectors: Tensor
    keys: Tensor
    count: Tensor

    def __init__(self, size: int, width: int, keys: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("keys", torch.zeros(size, keys, dtype=torch.int64))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))  # of all that ever came in

    def __len__(self) -> int:
        return min(int(self.count), len(self.vectors))

    def entries(self) -> tuple[Tensor, Tensor]:
        """What it holds, (m, d) and (m, k), in no order: m is below `size` until it is full."""
        return self.vectors[: len(self)], self.keys[: len(self)]

    @torch.no_grad()
    def enqueue(self, vectors: Tensor, keys: Tensor) -> None:
        """Put a batch in, after the loss has used the queue: the oldest give way, round the end if need be."""
        size = len(self.vectors)
        first = max(0, len(keys) - size)  # of a batch larger than the queue, only the end stays
        places = (self.count + torch.arange(first, len(keys), device=keys.device)) % max(size, 1)
        self.vectors[places] = vectors[first:].to(self.vectors.dtype)
        self.keys[places] = keys[first:]
        self.count += len(keys)
