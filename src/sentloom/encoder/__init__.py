"""Sentence encoders: backbone, packing, pooling, heads, prompts, loading and saving."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.encoder.encoder import Encoder
    from sentloom.encoder.pooling import Pooling
    from sentloom.encoder.tokens import Prompt

__all__ = ["Encoder", "Pooling", "Prompt"]

# The module of each name, imported on first use: a model can be located without torch, which takes seconds to import.
_MODULES = {"Encoder": "encoder", "Pooling": "pooling", "Prompt": "tokens"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sentloom.encoder' has no attribute {name!r}")
    return getattr(import_module(f"sentloom.encoder.{_MODULES[name]}"), name)
