"""Which pooling each stage of a plan trains: the recipe's, else the encoder's own, else the preset's.

A preset's pooling is for a raw language model. An encoder that states a pooling keeps it, unless the recipe says
otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sentloom.encoder.locate import locate
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.settings import own_pooling
from sentloom.errors import InputError
from sentloom.methods import METHODS
from sentloom.methods.cross_lingual import CrossLingualOptions
from sentloom.pipeline.plan import Plan, Stage


@dataclass(frozen=True)
class Change:
    """A stage (None: scoring the base) that gives an encoder another pooling than the one it has."""

    stage: str | None
    before: str
    after: str

    def __str__(self) -> str:
        """One line for the user."""
        if self.stage is None:
            return f"the base is scored with {self.after} pooling, not with its own ({self.before})"
        return f"{self.stage}: {self.in_words}"

    @property
    def in_words(self) -> str:
        """What the stage does, without its name."""
        return f"changes the encoder's pooling from {self.before} to {self.after}, as the recipe says"


def stated_pooling(model: str) -> str | None:
    """The pooling that a model states; None for a raw language model."""
    found = own_pooling(locate(model))
    return None if found is None else str(found)


def start_pooling(stage: Stage, source: str) -> str | None:
    """The pooling to load a stage's encoder with; None leaves the encoder its own."""
    if stage.pooling is not None:
        return stage.pooling
    own = stated_pooling(source)
    _refuse_unstated_change(stage, own)
    return stage.preset_pooling if own is None else None


def pooling_changes(plan: Plan) -> Iterator[Change]:
    """Every change of pooling that a plan makes; a method that would need an unstated one is refused."""
    assert plan.base is not None
    own = stated_pooling(plan.base)
    if not plan.stages and own is not None and plan.pooling not in (None, own):
        yield Change(None, own, str(plan.pooling))
    for stage in plan.stages:
        if stage.pooling is None:
            _refuse_unstated_change(stage, own)
        left = _left_pooling(stage, own)
        if own not in (None, left):
            yield Change(stage.name, str(own), left)
        own = left


def _left_pooling(stage: Stage, own: str | None) -> str:
    """The pooling of the encoder that a stage leaves."""
    trained = stage.pooling or own or stage.preset_pooling or str(Pooling())
    after = stage.options.inference_pooling if isinstance(stage.options, CrossLingualOptions) else None
    return str(Pooling.parse(after)) if after else trained


def _refuse_unstated_change(stage: Stage, own: str | None) -> None:
    needed = METHODS[stage.method].POOLING
    if needed is None or own in (None, needed):
        return
    raise InputError(
        f"stage {stage.name}",
        f"an encoder with {own} pooling, and no pooling in the recipe",
        f"{needed} pooling, which {stage.method} is defined for",
        f"write pooling: {needed} in the stage to change the encoder's pooling, or choose another method",
    )
