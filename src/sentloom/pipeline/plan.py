"""A plan: stages in order, with a base, seeds, and what results are scored on; and its YAML form.

Plans come from recipes (`pipeline.recipe`) or are built in Python:

    Plan("mine", base="embedded", stages=(stage("simcse", name="s", data="a.txt", steps=100),))
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sentloom.encoder.prompts import Prompt, Prompts
from sentloom.errors import InputError
from sentloom.pipeline.schema import Evaluate, Quoted, Select
from sentloom.pipeline.stages import PREVIOUS, Stage, Train
from sentloom.pipeline.yaml_source import Dumper, one_of, show


def training_stages(stages: Iterable[Stage]) -> tuple[Train, ...]:
    """The stages that train an encoder."""
    return tuple(stage for stage in stages if isinstance(stage, Train))


@dataclass(frozen=True)
class Plan:
    """Stages in order. Pooling and max_length are for a plan without stages, which scores the base."""

    name: str
    base: str | None  # None: no encoder is trained or scored
    stages: tuple[Stage, ...] = ()
    select: Select | None = None
    evaluate: Evaluate | None = None
    seeds: tuple[int, ...] = (1,)
    prompt: Prompt | None = None  # around every sentence
    pooling: str | None = None
    max_length: int | None = None
    trackers: tuple[str, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)
    title: str | None = None
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict, compare=False)  # where a path was written
    variables: Mapping[str, str] = field(default_factory=dict, compare=False)  # a path -> the variable in it

    @property
    def prompts(self) -> Prompts | None:
        """The prompt as an encoder takes it; None leaves the encoder its own."""
        return {"symmetric": self.prompt} if self.prompt else None

    @property
    def training(self) -> tuple[Train, ...]:
        """The stages that train an encoder."""
        return training_stages(self.stages)

    @property
    def once(self) -> frozenset[str]:
        """The names of the stages that are the same under every seed."""
        found: set[str] = set()
        encoder_is_same = True
        for stage in self.stages:
            same = not stage.SEEDED and found.issuperset(stage.references())
            if PREVIOUS in stage.models():
                same = same and encoder_is_same
            if same:
                found.add(stage.name)
            if stage.PRODUCES == "encoder":
                encoder_is_same = same
        return frozenset(found)


@dataclass(frozen=True)
class Recipe:
    """A file that was read and has no faults, with the names of its variants."""

    path: Path
    variants: tuple[str, ...]
    plans: Mapping[str | None, Plan]  # None: the common part
    quoted: Mapping[str, Quoted] = field(default_factory=dict)  # rows that cannot be run
    needs: Mapping[str, str] = field(default_factory=dict)  # where the value of a variable comes from

    def resolve(self, variant: str | None = None) -> Plan:
        """The plan of a variant, or of the common part."""
        if variant not in self.plans:
            wanted = one_of(str(variant), self.variants) if self.variants else "none: the recipe has no variants"
            raise InputError(str(self.path), f"there is no variant {show(variant)}", wanted, "correct the name")
        return self.plans[variant]


def to_yaml(plan: Plan) -> str:
    """The plan as a recipe of its own, every default written out: read again, it gives an equal plan."""
    written = {
        **{key: getattr(plan, key) for key in ("title", "name", "base", "pooling", "max_length")},
        "prompt": plan.prompt and asdict(plan.prompt),
        "stages": list(map(stage_values, plan.stages)),
        "select": plan.select and plan.select.model_dump(mode="json"),
        "evaluate": plan.evaluate and plan.evaluate.model_dump(mode="json"),
        "seeds": list(plan.seeds),
        "trackers": list(plan.trackers),
        "published": dict(plan.published),
    }
    return yaml.dump(written, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def stage_values(stage: Stage) -> dict[str, Any]:
    """A stage as a recipe writes it: `building.stage` of these values gives an equal stage."""
    return {
        **stage.model_dump(mode="json", exclude={"options", "settings"}),
        **stage.options.model_dump(mode="json"),
        **(stage.settings.model_dump(mode="json") if stage.settings else {}),
    }
