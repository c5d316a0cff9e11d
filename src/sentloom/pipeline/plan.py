"""What a recipe comes to: plans of stages, and their way back to YAML."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from sentloom.data.shapes import Shape
from sentloom.encoder.prompts import Prompt
from sentloom.errors import InputError
from sentloom.methods import METHODS, Options
from sentloom.pipeline.schema import Evaluate, Select
from sentloom.pipeline.yaml_source import Dumper, one_of, show
from sentloom.training.settings import Settings
from sentloom.views.settings import ViewSettings


@dataclass(frozen=True)
class Stage:
    """One method on one body of data; pooling and max_length None leave the encoder's own, if it has one."""

    name: str
    method: str
    preset: str | None
    data: tuple[str, ...]
    columns: Mapping[str, str | int] | None
    shape: Shape | None
    data_share: float  # of the rows, by a hash of their first text: a smaller share is part of a larger one
    views: ViewSettings | None
    transductive: bool  # sentences that are scored on may stand in the data
    drop_leaks: bool  # rows with such sentences are left out
    vocabulary: int | None  # pieces that the encoder's tokenizer learns from the data first
    pooling: str | None
    max_length: int | None
    options: Options
    settings: Settings

    @property
    def preset_pooling(self) -> str | None:
        """The preset's pooling: for a raw language model, which has none of its own."""
        found: str | None = METHODS[self.method].PRESETS[self.preset or "default"].get("pooling")
        return found


@dataclass(frozen=True)
class Making:
    """A stage that makes a text-to-text model or data, once for all seeds, before any encoder learns."""

    name: str
    method: str
    preset: str | None
    model: str  # a folder, a hub name, or `stage:NAME`
    data: tuple[str, ...]
    columns: Mapping[str, str | int] | None
    shape: Shape | None
    data_share: float
    transductive: bool
    drop_leaks: bool
    seed: int
    options: Options
    settings: Settings | None  # None: nothing learns


@dataclass(frozen=True)
class Plan:
    """A recipe, or one of its variants, with everything filled in. Pooling and max_length are for a base as it is."""

    title: str | None
    name: str
    base: str | None  # None: no encoder is trained or scored
    prompt: Prompt | None  # around every sentence
    pooling: str | None
    max_length: int | None
    making: tuple[Making, ...]
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
        "prompt": plan.prompt and asdict(plan.prompt),
        "stages": [*map(_making_values, plan.making), *map(_stage_values, plan.stages)],
        "select": plan.select and plan.select.model_dump(mode="json"),
        "evaluate": plan.evaluate and plan.evaluate.model_dump(mode="json"),
        "seeds": list(plan.seeds),
        "trackers": list(plan.trackers),
        "published": dict(plan.published),
    }
    return yaml.dump(written, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def _stage_values(stage: Stage) -> dict[str, Any]:
    return {
        **_data_values(stage),
        "views": stage.views and stage.views.model_dump(mode="json"),
        **{key: getattr(stage, key) for key in ("vocabulary", "pooling", "max_length")},
        **stage.options.model_dump(mode="json"),
        **stage.settings.model_dump(mode="json"),
    }


def _making_values(stage: Making) -> dict[str, Any]:
    return {
        **_data_values(stage),
        **{key: getattr(stage, key) for key in ("model", "seed")},
        **stage.options.model_dump(mode="json"),
        **(stage.settings.model_dump(mode="json") if stage.settings else {}),
    }


def _data_values(stage: Stage | Making) -> dict[str, Any]:
    return {
        **{key: getattr(stage, key) for key in ("name", "method", "preset")},
        "data": list(stage.data),
        "columns": stage.columns and dict(stage.columns),
        "shape": stage.shape and str(stage.shape),
        **{key: getattr(stage, key) for key in ("data_share", "transductive", "drop_leaks")},
    }
