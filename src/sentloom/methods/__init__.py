"""How an encoder learns: one paper, one file, readable beside it."""

from sentloom.methods.method import (
    Embeddings,
    Learner,
    MatryoshkaOptions,
    Method,
    NegativesOptions,
    Options,
    TokenMethod,
)
from sentloom.methods.registry import METHODS, read_presets
from sentloom.methods.settings import Settings

__all__ = [
    "METHODS",
    "Embeddings",
    "Learner",
    "MatryoshkaOptions",
    "Method",
    "NegativesOptions",
    "Options",
    "Settings",
    "TokenMethod",
    "read_presets",
]
