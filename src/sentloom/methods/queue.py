"""A queue of past vectors as additional negatives. Its buffers are part of the method's state and of checkpoints."""

import torch
from torch import Tensor, nn


class Queue(nn.Module):
    """The newest `size` vectors, each with some keys. It starts empty and takes batches of any size."""

    vectors: Tensor
    keys: Tensor
    count: Tensor

    def __init__(self, size: int, width: int, keys: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("keys", torch.zeros(size, keys, dtype=torch.int64))
        # Vectors ever added: the next one goes to count % size.
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        return min(int(self.count), len(self.vectors))

    def entries(self) -> tuple[Tensor, Tensor]:
        """The vectors (m, d) and their keys (m, k), in no particular order; m < size until the queue is full."""
        return self.vectors[: len(self)], self.keys[: len(self)]

    @torch.no_grad()
    def enqueue(self, vectors: Tensor, keys: Tensor) -> None:
        """Add a batch; it overwrites the oldest vectors, wrapping around at the end."""
        size = len(self.vectors)
        first = max(0, len(keys) - size)  # only the end of a batch larger than the queue is kept
        places = (self.count + torch.arange(first, len(keys), device=keys.device)) % max(size, 1)
        self.vectors[places] = vectors[first:].to(self.vectors.dtype)
        self.keys[places] = keys[first:]
        self.count += len(keys)
