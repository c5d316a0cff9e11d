"""The changes of pooling that a plan makes: a recipe may ask for another pooling than the one that an encoder has."""

from collections.abc import Iterator
from dataclasses import dataclass

from sentloom.pipeline.plan import Plan
from sentloom.pipeline.stages.train import stated_pooling


@dataclass(frozen=True)
class PoolingChange:
    """A stage (None: scoring the base) that gives an encoder another pooling than the one it has."""

    stage: str | None
    before: str
    after: str

    def __str__(self) -> str:
        """One line for the user."""
        if self.stage is None:
            return f"the base is scored with {self.after} pooling, not with its own ({self.before})"
        return f"{self.stage}: {self.note}"

    @property
    def note(self) -> str:
        """What the stage does, without its name."""
        return f"changes the encoder's pooling from {self.before} to {self.after}, as the recipe says"


def pooling_changes(plan: Plan) -> Iterator[PoolingChange]:
    """Every change of pooling that a plan makes; a method that would need an unstated one is refused."""
    assert plan.base is not None
    own = stated_pooling(plan.base)
    if not plan.training and own is not None and plan.pooling not in (None, own):
        yield PoolingChange(None, own, str(plan.pooling))
    for stage in plan.stages:
        if stage.PRODUCES == "encoder":
            after = stage.pooling_after(own)
            if own not in (None, after):
                yield PoolingChange(stage.name, str(own), str(after))
            own = after
