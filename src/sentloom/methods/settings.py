"""How a stage is trained, whatever the method: batch, optimiser, schedule."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sentloom.data.batches import Batches, make_batches
from sentloom.data.dataset import Dataset

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]


class Lora(BaseModel):
    """Low-rank adapters: W + alpha/rank B A beside every linear layer, where A and B alone learn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: int = Field(16, ge=1)
    alpha: float = Field(32.0, gt=0)


class Settings(BaseModel):
    """The numbers of a training run. Every method has its own defaults (its preset `default`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    batch: int = Field(64, ge=2)  # rows per step, over all processes
    chunk: int | None = Field(None, ge=1)  # rows per forward pass (gradient cache); None: the whole batch at once
    # Of each block, keep only what goes into it, and compute the rest once more in the backward pass: for long texts.
    activation_checkpointing: bool = False
    # With several datasets each batch comes from one of them, sampled in proportion to n^(1/T) for a temperature T, or
    # by the given weights.
    mix: Positive | tuple[Weight, ...] | None = None
    rows_per_label: int = Field(4, ge=1)  # of labelled texts: rows of one label that come together
    accumulate: int = Field(1, ge=1)  # batches whose gradients are averaged before each optimiser step
    epochs: float | None = Field(None, gt=0)
    steps: int | None = Field(None, ge=1)  # optimiser steps; overrides epochs
    optimizer: Literal["adamw", "adam", "adafactor"] = "adamw"
    learning_rate: float = Field(5e-5, gt=0)
    scale_parameter: bool = False  # Adafactor: the rate is relative to a parameter's size, as in t5x
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(1e-8, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["linear", "constant-then-linear", "cosine", "constant", "warmup-stable-decay"] = "constant"
    warmup: Share = 0.0  # share of the steps in which the rate rises (constant-then-linear: stays) before it falls
    warmup_steps: int | None = Field(None, ge=0)  # the same in steps; overrides warmup
    decay_factor: Positive | None = None  # linear, as in t5x: what the rate loses per step, of 1; None: as falls to 0
    decay: Share = 0.1  # warmup-stable-decay: the share of the steps at the end in which the rate falls to 0
    # Without a gradient, as in the code of SimCSE and GenSE, the gradient of several processes is that of the whole
    # batch divided by their number.
    gather: Literal["with-gradient", "without-gradient"] = "with-gradient"
    clip: float | None = Field(None, gt=0)  # maximum norm of the gradient
    freeze_layers: int | None = Field(None, ge=0)  # 0: the embeddings; k: also the first k blocks
    lora: Lora | None = None  # train adapters instead of the backbone's weights; they are added to these in the end
    dropout: Share | None = None  # for backbones whose own dropout is 0
    log_every: int = Field(50, ge=1)
    checkpoint_seconds: float = Field(120.0, ge=0)
    snapshots: int | None = Field(None, ge=1)  # steps between snapshots of the encoder, each a model folder

    @model_validator(mode="after")
    def _some_end(self) -> "Settings":
        if self.epochs is None and self.steps is None:
            raise ValueError("neither epochs nor steps is given")
        if self.lora is not None and self.freeze_layers is not None:
            raise ValueError("freeze_layers with lora, which freezes all layers")
        if self.decay_factor is not None and self.schedule != "linear":
            raise ValueError(f"decay_factor with the schedule {self.schedule}: it is of linear")
        return self

    def batches(self, data: Dataset, seed: int) -> Batches:
        """The batches of a run under a seed."""
        return make_batches(data, self.batch, seed, self.mix, self.rows_per_label)

    def total_steps(self, batches_per_epoch: int) -> int:
        """The number of optimiser steps."""
        if self.steps is not None:
            return self.steps
        return max(1, int((self.epochs or 0) * batches_per_epoch) // self.accumulate)
