"""Projection heads and normalisation, applied after pooling in training and inference."""

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"identity": nn.Identity, "tanh": nn.Tanh}


class Projection(nn.Module):
    """A linear layer and an activation, with the same weight names as sentence-transformers' Dense."""

    def __init__(self, width_in: int, width_out: int, *, bias: bool = True, activation: str = "identity") -> None:
        super().__init__()
        self.linear = nn.Linear(width_in, width_out, bias=bias)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        """(n, width_in) -> (n, width_out)."""
        result: Tensor = self.activation(self.linear(x))
        return result


def normalize(x: Tensor) -> Tensor:
    """Scale rows to unit length; a zero row stays zero."""
    return torch.nn.functional.normalize(x, dim=-1)
