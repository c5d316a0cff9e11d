"""The lab: the five papers, their tables and baselines, and what researchers need to try something new.

    sentloom.lab.train("simcse", "out")
    sentloom.lab.reproduce("gense/table-2", "out")

The product never imports it: it finds the lab's stages, suites and baselines through entry points (`sentloom.plugins`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.lab.comparing import compare
    from sentloom.lab.making import mine, synthesize
    from sentloom.lab.reproducing import reproduce
    from sentloom.lab.training import Trained, train

__all__ = ["Trained", "compare", "mine", "reproduce", "synthesize", "train"]

_MODULES = {
    "Trained": "training",
    "compare": "comparing",
    "mine": "making",
    "reproduce": "reproducing",
    "synthesize": "making",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
