"""What a recipe comes to: plans of stages, and their way back to YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.methods import Options
from sentloom.recipe.places import Dumper, one_of, show
from sentloom.recipe.schema import Evaluate, Select
from sentloom.training.settings import Settings
from sentloom.views.settings import ViewSettings


@dataclass(frozen=True)
class Stage:
    """One method on one body of data; pooling and max_length None leave the encoder's own."""

    name: str
    method: str
    preset: str | None
    data: tuple[str, ...]
    columns: Mapping[str, str | int] | None
    shape: Shape | None
    views: ViewSettings | None
    transductive: bool  # sentences that are scored on may stand in the data
    drop_leaks: bool  # rows with such sentences are left out
    vocabulary: int | None  # pieces that the encoder's tokenizer learns from the data first
    pooling: str | None
    max_length: int | None
    options: Options
    settings: Settings


@dataclass(frozen=True)
class Plan:
    """A recipe, or one of its variants, with everything filled in. Pooling and max_length are for a base as it is."""

    title: str | None
    name: str
    base: str
    pooling: str | None
    max_length: int | None
    stages: tuple[Stage, ...]
    select: Select | None
    evaluate: Evaluate | None
    seeds: tuple[int, ...]
    trackers: tuple[str, ...]
    published: Mapping[str, float]


@dataclass(frozen=True)
class Variant:
    """A row of a table: what differs from the common part, and the scores that were published for it."""

    name: str
    overrides: Mapping[str, Any]
    published: Mapping[str, float]


@dataclass(frozen=True)
class Recipe:
    """A file that was read and found right, its variants included."""

    path: Path
    variants: dict[str, Variant]
    plans: Mapping[str | None, Plan]  # None: the common part

    def resolve(self, variant: str | None = None) -> Plan:
        """The plan of a variant, or of the common part."""
        if variant not in self.plans:
            wanted = one_of(str(variant), self.variants) if self.variants else "no variant: the recipe has none"
            raise InputError(str(self.path), f"the variant {show(variant)}", wanted, "correct the name")
        return self.plans[variant]


def to_yaml(plan: Plan) -> str:
    """The plan as a recipe of its own, every default written out: read again, it gives an equal plan."""
    written = {
        **{key: getattr(plan, key) for key in ("title", "name", "base", "pooling", "max_length")},
        "stages": [_stage_values(stage) for stage in plan.stages],
        "select": plan.select and plan.select.model_dump(mode="json"),
        "evaluate": plan.evaluate and plan.evaluate.model_dump(mode="json"),
        "seeds": list(plan.seeds),
        "trackers": list(plan.trackers),
        "published": dict(plan.published),
    }
    return yaml.dump(written, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def _stage_values(stage: Stage) -> dict[str, Any]:
    return {
        **{key: getattr(stage, key) for key in ("name", "method", "preset")},
        "data": list(stage.data),
        "columns": stage.columns and dict(stage.columns),
        "shape": stage.shape and str(stage.shape),
        "views": stage.views and stage.views.model_dump(mode="json"),
        **{key: getattr(stage, key) for key in ("transductive", "drop_leaks", "vocabulary", "pooling", "max_length")},
        **stage.options.model_dump(mode="json"),
        **stage.settings.model_dump(mode="json"),
    }
