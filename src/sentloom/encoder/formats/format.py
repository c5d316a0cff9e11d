"""What the file of a format tells about it, as its `FORMAT`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom.encoder.golden import EXACT

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

CLOSE = 0.99  # the mean cosine that 8-bit weights must reach


@dataclass(frozen=True)
class Target:
    """How an encoder is written into a new folder, and how close its vectors must be; None: they are others by design.

    A `note` is what whoever writes it has to know about its vectors.
    """

    write: Callable[["Encoder", Path], None]
    required: float | None = EXACT
    note: str = ""

    @property
    def lossy(self) -> bool:
        """Whether vectors are not the same, so that a score has to be compared too."""
        return self.required != EXACT


@dataclass(frozen=True)
class Format:
    """A format of model folders.

    `load` takes the folder, and by name pooling, prompts and max_length, None for the folder's own. It returns the
    constructor arguments of an Encoder.
    """

    holds: Callable[[Path], bool]  # whether a folder has this format
    load: Callable[..., dict[str, Any]]
    targets: Mapping[str, Target]  # by the names that the registry lists
    package: str  # the library that runs it, on whose version the fastest backend depends
    reader: str = "sentence-transformers"  # the library that its card names for reading it
    trainable: bool = False  # never replaced by an export
