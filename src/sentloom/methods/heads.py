"""Projection heads that a method trains on top of the encoder, and that may stay part of it."""

from typing import Literal

from torch import nn

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError

Head = Literal["none", "linear", "linear-tanh"]


def build_head(method: str, kind: Head, width_in: int, width_out: int) -> Projection | None:
    """The map from the trained encoder's width to the source's; None if there is none."""
    if kind != "none":
        return Projection(width_in, width_out, activation="tanh" if kind == "linear-tanh" else "identity")
    if width_in != width_out:
        problem = f"the encoder has width {width_in} and the source has width {width_out}"
        raise InputError(method, problem, "equal widths, or a head between them", "set head: linear")
    return None


def attach_head(encoder: Encoder, head: Projection | None, keep: bool) -> nn.Module:
    """Return what training applies after the encoder: the head, or nothing if the encoder keeps it or there is none."""
    if head is None or not keep:
        return head or nn.Identity()
    encoder.heads.append(head)
    return nn.Identity()
