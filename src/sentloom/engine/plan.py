"""A plan: stages in order, with a base, seeds, and what results are scored on; and its YAML form.

Plans come from recipes (`lab.recipe`) or are built in Python:

    Plan("mine", base="embedded", stages=(stage("simcse", name="s", data="a.txt", steps=100),))
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from sentloom.encoder.tokens import Prompt, Prompts
from sentloom.engine.schema import Domain, Evaluate, Quoted, Select, one_of, show
from sentloom.engine.stages import PREVIOUS, Stage, Train
from sentloom.errors import InputError

# YAML 1.2, as recipes are written and read: `on` and `no` are text, 5e-5 is a number, a date is text.
RESOLVERS = [
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("tag:yaml.org,2002:float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
]


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
    published_deviation: Mapping[str, float] = field(default_factory=dict)
    domains: Mapping[str, Domain] = field(default_factory=dict)
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
        names: set[str] = set()
        encoder_is_same = True
        for stage in self.stages:
            same = not stage.SEEDED and names.issuperset(stage.references())
            if PREVIOUS in stage.models():
                same = same and encoder_is_same
            if same:
                names.add(stage.name)
            if stage.PRODUCES == "encoder":
                encoder_is_same = same
        return frozenset(names)


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
            expected = one_of(str(variant), self.variants) if self.variants else "none: the recipe has no variants"
            raise InputError(str(self.path), f"there is no variant {show(variant)}", expected, "correct the name")
        return self.plans[variant]


class Dumper(yaml.SafeDumper):
    """Quotes what a recipe's reader would not read as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Every kind of line break is escaped: yaml loses some of them in its other styles."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


Dumper.add_representer(str, Dumper.represent_str)
for _tag, _form, _starts in RESOLVERS:
    Dumper.add_implicit_resolver(_tag, re.compile(f"^(?:{_form})$"), _starts)


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
        "published_deviation": dict(plan.published_deviation),
        "domains": {name: domain.model_dump(mode="json") for name, domain in plan.domains.items()},
    }
    return yaml.dump(written, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def stage_values(stage: Stage) -> dict[str, Any]:
    """A stage as a recipe writes it: `building.stage` of these values gives an equal stage."""
    return {
        **stage.model_dump(mode="json", exclude={"options", "settings"}),
        **stage.options.model_dump(mode="json"),
        **(stage.settings.model_dump(mode="json") if stage.settings else {}),
    }


def file_names(names: Sequence[str]) -> dict[str, str]:
    """File names of variants; where two would be the same, a hash is added."""
    plain = {name: re.sub(r"[^\w+.-]+", "-", name).strip(".-") or "variant" for name in names}
    folded = Counter(file.casefold() for file in plain.values())
    return {
        name: f"{file}-{sha256(name.encode()).hexdigest()[:6]}" if folded[file.casefold()] > 1 else file
        for name, file in plain.items()
    }
