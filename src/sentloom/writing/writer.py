"""The contract of a writer: `write(sources, kind, prompt)` gives one text per source, and `judge` scores pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentloom.writing.prompts import Kind, WritingPrompt

Pair: TypeAlias = tuple[str, str]  # a premise and a hypothesis


@dataclass(frozen=True)
class SourceText:
    """A text to write for: a row of the raw data, for the `candidate`-th time."""

    row: int
    text: str
    candidate: int = 0


@dataclass(frozen=True)
class Written:
    """A text, which may be empty, whether it ended by itself, and how many tokens were read and written for it."""

    text: str
    finished: bool = True
    tokens_read: int = 0
    tokens_written: int = 0


class Writer(Protocol):
    """What writes and judges. Results are in the order of what was asked."""

    name: str  # of the backend

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        """One text of this kind per source."""

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """P(true) (n,) that each hypothesis follows from its premise."""
