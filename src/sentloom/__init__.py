"""sentloom turns the text a team has into the sentence encoder it needs, and proves that it got better.

>>> import sentloom
>>> encoder = sentloom.Encoder.load("embedded")
>>> round(float(encoder.similarity("A dog runs.", "A dog runs.")), 3)
1.0
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.api.comparing import compare
    from sentloom.api.fitting import Fit, fit
    from sentloom.api.mining import mine
    from sentloom.api.reproducing import reproduce
    from sentloom.api.scoring import evaluate
    from sentloom.api.shrinking import shrink
    from sentloom.api.synthesis import synthesize
    from sentloom.api.training import Trained, train
    from sentloom.corpus.opening import read
    from sentloom.data import Dataset, Shape
    from sentloom.encoder import Encoder, Prompt
    from sentloom.errors import SentloomError

__version__ = metadata.version("sentloom")
__all__ = [
    "Dataset", "Encoder", "Fit", "Prompt", "SentloomError", "Shape", "Trained", "compare", "evaluate", "fit", "mine",
    "read", "reproduce", "shrink", "synthesize", "train",
]  # fmt: skip

# The module of each name. It is imported on first use: torch and transformers take seconds, and `--help` needs neither.
_MODULES = {
    "Dataset": "data",
    "Encoder": "encoder",
    "Fit": "api.fitting",
    "Prompt": "encoder",
    "SentloomError": "errors",
    "Shape": "data",
    "Trained": "api.training",
    "compare": "api.comparing",
    "evaluate": "api.scoring",
    "fit": "api.fitting",
    "mine": "api.mining",
    "read": "corpus.opening",
    "reproduce": "api.reproducing",
    "shrink": "api.shrinking",
    "synthesize": "api.synthesis",
    "train": "api.training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sentloom' has no attribute {name!r}")
    return getattr(import_module(f"sentloom.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
