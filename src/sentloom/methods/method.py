"""The contract between a paper and the training loop: what every method provides."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection, record_dimensions
from sentloom.encoder.lora import without_lora
from sentloom.errors import InputError

Embeddings = tuple[Tensor, ...]  # each (n, ...), one row per row of the batch
Presets = Mapping[str, Mapping[str, Any]]  # name -> options, training settings, pooling and max_length of a stage
Log = Callable[[str], None]
Dimension = Annotated[int, Field(ge=1)]
Head = Literal["none", "linear", "linear-tanh"]


class Options(BaseModel):
    """The choices that a method leaves open. Defaults are the paper's, with its faults corrected."""

    # Options that name a model: stages are cached by its content, not its name. `teacher` names a cross-encoder, any
    # other option an encoder.
    MODELS: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(extra="forbid", frozen=True)


class NegativesOptions(Options):
    """Options of a method that uses the other rows of a batch as negatives."""

    mask_duplicates: bool = True  # rows that share a text are not negatives of each other


class MatryoshkaOptions(Options):
    """Options of a method whose loss compares vectors: it can also train their first dimensions."""

    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1)] | None = None  # such as [384, 256, 128, 64]


class Learner(nn.Module):
    """What the loop trains. Its state_dict is the whole changing state of a run."""

    NAME: ClassVar[str]
    REVISION: ClassVar[int] = 1  # raise it when the method's numbers change: cached stages are then computed again
    PRESETS: ClassVar[Presets] = {"default": {"epochs": 1}}
    SHAPES: ClassVar[tuple[Shape, ...]] = (Shape.TEXTS,)  # data it can learn from; the first is the natural one
    Options: ClassVar[type[Options]] = Options
    notes: tuple[str, ...] = ()  # remarks for the user about how this instance was built

    @property
    def frozen(self) -> tuple[str, ...]:
        """The names of submodules that never change: checkpoints store their hash only."""
        return ()

    @property
    def scored(self) -> Any:
        """The part that is scored during training and whose best weights are restored."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write the result."""
        raise NotImplementedError

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """Vectors for the collapse check; None if the learner has none."""
        return None

    def masked(self, batch: Batch) -> int:
        """How many pairs of rows are not used as negatives because they share a text."""
        return 0

    def readings(self) -> dict[str, float]:
        """Values to log besides the loss, such as a learned temperature."""
        return {}

    def after_step(self) -> None:
        """Called after every optimiser step: update a moving average, fill a queue."""


class Method(Learner):
    """Trains an encoder: a paper in `embed`, `loss` and `after_step`.

    `embed` is the expensive part and treats every row by itself, so the loop may run it on chunks of the batch. `loss`
    is cheap and sees the embeddings of all chunks and all processes at once: everything that mixes rows belongs there.
    """

    NEEDS_DROPOUT: ClassVar[bool] = False  # the two views of a sentence differ by dropout only
    POOLING: ClassVar[str | None] = None  # the pooling that the method is defined for; None: any

    @classmethod
    def needed_pooling(cls, options: Any) -> str | None:
        """The pooling that the method needs with these options; None: any."""
        return cls.POOLING

    def __init__(self, encoder: Encoder, options: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.options = options  # an instance of the method's Options

    def embed(self, batch: Batch) -> Embeddings:
        """Vectors of some rows, each row by itself."""
        raise NotImplementedError

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The loss of a whole batch, from the vectors that `embed` returned for its rows."""
        raise NotImplementedError

    def total_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The loss, or its sum over the dimensions that vectors can be cut to (Kusupati et al., 2022, eq. 1)."""
        dimensions = getattr(self.options, "dimensions", None)
        if not dimensions:
            return self.loss(embeddings, batch)
        cut = [tuple(vectors[..., :m] for vectors in embeddings) for m in dimensions]
        return torch.stack([self.loss(vectors, batch) for vectors in cut]).sum()

    def finished(self) -> Encoder:
        """The trained encoder, without the parts that only training needs."""
        encoder = without_lora(self.encoder)
        record_dimensions(encoder, getattr(self.options, "dimensions", None))
        return encoder

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Compute what depends on the data only, and store it in a folder that all runs share. Optional."""

    def rehearse(self, data: Dataset) -> float:
        """Get ready for timing a few steps without `prepare`; return the seconds that `prepare` would take."""
        return 0.0

    def encode(self, *columns: Sequence[str]) -> Tensor:
        """Columns of n texts each in one pass through the encoder, (columns * n, d), before normalisation."""
        return self.encoder([ids for column in columns for ids in self.encoder.tokenize(column)], raw=True)

    def same(self, batch: Batch) -> Tensor | None:
        """(b, b): which rows share a text, and so are not negatives of each other; None if nothing is masked."""
        if not getattr(self.options, "mask_duplicates", False):
            return None
        return torch.from_numpy(batch.equal()).to(self.encoder.device)

    def masked(self, batch: Batch) -> int:
        """How many pairs of rows `same` masks."""
        same = self.same(batch)
        return 0 if same is None else int((same | same.T).triu(1).sum())

    @property
    def scored(self) -> Encoder:
        """The encoder."""
        return self.encoder

    def save(self, folder: Path) -> None:
        """Write the encoder."""
        self.finished().save(folder, golden=False)

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The encoder's vectors."""
        return self.encoder.encode(texts)


class TokenMethod(Learner):
    """Token-level training: the loss is a sum over tokens, so the losses of chunks add up."""

    def weight(self, batch: Batch) -> float:
        """What the sum is divided by, known before any chunk runs."""
        raise NotImplementedError

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over the tokens of these rows."""
        raise NotImplementedError


def build_head(method: str, kind: Head, width_in: int, width_out: int) -> Projection | None:
    """The map from the trained encoder's width to the source's; None if there is none.

    It starts as the identity, with zeros for what the wider side has more: a random map would hand the encoder a source
    in a space of its own, which costs it what it knows long before it learns (docs/papers/claims.md).
    """
    if kind != "none":
        head = Projection(width_in, width_out, activation="tanh" if kind == "linear-tanh" else "identity")
        nn.init.eye_(head.linear.weight)
        nn.init.zeros_(head.linear.bias)
        return head
    if width_in != width_out:
        problem = f"the encoder has width {width_in} and the source has width {width_out}"
        raise InputError(method, problem, "equal widths, or a head between them", "set head: linear")
    return None


def attach_head(encoder: Encoder, head: Projection | None, keep: bool) -> nn.Module:
    """Return what training applies after the encoder: the head, or nothing if the encoder keeps it or there is none."""
    if head is None or not keep:
        return head or nn.Identity()
    encoder.heads.append(head)
    return nn.Identity()
