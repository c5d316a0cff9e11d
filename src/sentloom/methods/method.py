"""What a method is: the contract between a paper and the training loop."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder

Embeddings = Mapping[str, Tensor]  # each (rows, ...)
Tell = Callable[[str], None]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Options(BaseModel):
    """What a method leaves open. Defaults are the paper, its faults corrected."""

    MODELS: ClassVar[tuple[str, ...]] = ()  # options that name a model: what counts is the model, not its name

    model_config = ConfigDict(extra="forbid", frozen=True)


class Learner(nn.Module):
    """What the loop trains: its state is the whole changing state of a run."""

    NAME: ClassVar[str]
    REVISION: ClassVar[int] = 1  # raised when the numbers of a method change: kept stages are then made anew
    # "default", "paper", "official-code" -> settings of a stage; `pooling` is for a model that has none of its own
    PRESETS: ClassVar[dict[str, dict[str, Any]]]
    SHAPES: ClassVar[tuple[Shape, ...]] = (Shape.TEXTS,)  # what a row may be; the first is the natural one
    Options: ClassVar[type[Options]]
    notes: tuple[str, ...] = ()  # what a user should know of how this one was built
    FROZEN: tuple[str, ...] = ()  # parts that never change: checkpoints keep their hash alone

    @property
    def kept(self) -> Any:
        """The part that is scored on the way, and whose best weights are kept."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write what is kept at the end."""
        raise NotImplementedError

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """What the gauges of collapse look at; None where the learner makes no vectors."""
        return None

    def masked(self, batch: Batch) -> int:
        """How many pairs of a batch's rows are not used as negatives, since they share a text."""
        return 0

    def readings(self) -> dict[str, float]:
        """Numbers of its own for the journal, such as a learnt temperature."""
        return {}

    def after_step(self) -> None:
        """What follows the optimiser: a moving average, a queue."""


class Method(Learner):
    """Owns the trained encoder and everything else that changes.

    `embed` is the dear part, row by row, so that the loop may cut it into chunks; `loss` is the cheap part and sees the
    rows of all chunks and all processes at once: whatever mixes rows belongs there.
    """

    NEEDS_DROPOUT: ClassVar[bool] = False  # the two views of a sentence come from dropout
    POOLING: ClassVar[str | None] = None  # the pooling that the method is defined for; None: any

    def __init__(self, encoder: Encoder, options: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.options = options  # of the method's own type

    @property
    def kept(self) -> Encoder:
        """The encoder."""
        return self.encoder

    def save(self, folder: Path) -> None:
        """Write the encoder as it would be kept now."""
        self.finished().save(folder)

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The encoder's."""
        return self.encoder.encode(texts)

    def prepare(self, data: Dataset, folder: Path, log: Tell = lambda text: None) -> None:
        """What can be computed once from the data and kept in a folder, for all runs; without it, training does it."""

    def embed(self, batch: Batch) -> Embeddings:
        """Vectors of a batch's rows, each row by itself."""
        raise NotImplementedError

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The loss of a whole batch."""
        raise NotImplementedError

    def finished(self) -> Encoder:
        """What is kept at the end."""
        return self.encoder


class TokenMethod(Learner):
    """Token-level training: the loss is a sum over tokens, so chunks are simply added up."""

    def weight(self, batch: Batch) -> float:
        """By how much the sum is divided, known before any chunk runs."""
        raise NotImplementedError

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over the tokens of these rows."""
        raise NotImplementedError


def count_equal(batch: Batch, mask: bool) -> int:
    """How many pairs of rows `known_equal` masks."""
    return int(batch.equal().sum()) // 2 if mask else 0


def known_equal(batch: Batch, like: Tensor, mask: bool) -> Tensor | None:
    """Which rows share a text, (b, b), where duplicates are to be masked."""
    return torch.from_numpy(batch.equal()).to(like.device) if mask else None
