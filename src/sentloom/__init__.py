"""sentloom turns the text a team has into the sentence encoder it needs, and proves that it got better."""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.api import Fit, fit
    from sentloom.data import Dataset, read
    from sentloom.encoder import Encoder, Prompt
    from sentloom.errors import SentloomError
    from sentloom.evaluation.evaluate import evaluate

__version__ = metadata.version("sentloom")
__all__ = ["Dataset", "Encoder", "Fit", "Prompt", "SentloomError", "evaluate", "fit", "read"]

# Where each name lives. Loaded when first used: torch and transformers take seconds, and `--help` needs neither.
_HOMES = {
    "Dataset": "sentloom.data",
    "Encoder": "sentloom.encoder",
    "Fit": "sentloom.api",
    "Prompt": "sentloom.encoder",
    "SentloomError": "sentloom.errors",
    "evaluate": "sentloom.evaluation.evaluate",
    "fit": "sentloom.api",
    "read": "sentloom.data",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sentloom' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
