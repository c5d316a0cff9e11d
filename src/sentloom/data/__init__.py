"""What comes in: data of seven shapes, read from files or memory, checked and held on disk.

The modules here read rows into a `Dataset` (`inputs` finds what to read, `sources` opens it, `readers` checks every
row) and make batches of it. `corpus` opens data by name, also the text of installed packages. `hygiene` inspects and
cleans data: near duplicates, leaks, languages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentloom.data.dataset import Dataset
    from sentloom.data.readers import read
    from sentloom.data.shapes import Shape

__all__ = ["Dataset", "Shape", "read"]

# Imported on first use: the commands need shapes for their options, and `--help` should not wait for the readers.
_MODULES = {"Dataset": "dataset", "Shape": "shapes", "read": "readers"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
