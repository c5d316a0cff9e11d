"""Positive pairs: back-translation, synonyms, mask-fill, ready pairs, entailment, passages of documents.

Names are imported on first use: the makers need torch, but the settings, which recipes read, do not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.views.pairs import make_pairs
    from sentloom.views.settings import (
        BackTranslation,
        Entailment,
        MaskFill,
        Neighbours,
        Pivot,
        ReadyPairs,
        Spans,
        Synonyms,
        ViewSettings,
        view_settings,
    )

__all__ = [
    "BackTranslation",
    "Entailment",
    "MaskFill",
    "Neighbours",
    "Pivot",
    "ReadyPairs",
    "Spans",
    "Synonyms",
    "ViewSettings",
    "make_pairs",
    "view_settings",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sentloom.views' has no attribute {name!r}")
    return getattr(import_module(f"sentloom.views.{'pairs' if name == 'make_pairs' else 'settings'}"), name)
