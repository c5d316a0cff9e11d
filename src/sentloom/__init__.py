"""sentloom turns the text a team has into the sentence encoder it needs, and proves that it got better.

>>> import sentloom
>>> encoder = sentloom.Encoder.load("embedded")
>>> round(float(encoder.similarity("A dog runs.", "A dog runs.")), 3)
1.0
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom import lab
    from sentloom.api.fitting import Fit, fit
    from sentloom.api.predicting import Predictor
    from sentloom.api.scoring import evaluate, shrink
    from sentloom.data import Dataset, Shape
    from sentloom.data.corpus.opening import read
    from sentloom.encoder import Encoder, Prompt
    from sentloom.errors import SentloomError

__version__ = metadata.version("sentloom")
__all__ = [
    "Dataset",
    "Encoder",
    "Fit",
    "Predictor",
    "Prompt",
    "SentloomError",
    "Shape",
    "evaluate",
    "fit",
    "lab",
    "read",
    "shrink",
]

# The module of each name. It is imported on first use: torch and transformers take seconds, and `--help` needs neither.
_MODULES = {
    "Dataset": "data",
    "Encoder": "encoder",
    "Fit": "api.fitting",
    "Predictor": "api.predicting",
    "Prompt": "encoder",
    "SentloomError": "errors",
    "Shape": "data",
    "evaluate": "api.scoring",
    "fit": "api.fitting",
    "read": "data.corpus.opening",
    "shrink": "api.scoring",
}


def __getattr__(name: str) -> Any:
    if name == "lab":
        return import_module("sentloom.lab")
    if name not in _MODULES:
        raise AttributeError(f"module 'sentloom' has no attribute {name!r}")
    return getattr(import_module(f"sentloom.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
