"""Read the tables of published evaluation sets: one YAML file per suite in `sets/`, validated on reading."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, field_validator

from sentloom.data.shapes import Shape
from sentloom.evaluation.set_source import SetPart
from sentloom.evaluation.task import Average
from sentloom.lab.suites.probed_sets import Features, ProbedSet

FOLDER = Path(__file__).parent / "sets"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if libyaml is installed


class Edition(BaseModel):
    """An edition of a `ProbedSet`, with the names of its parts."""

    model_config = ConfigDict(extra="forbid")

    shape: Shape
    train: str
    test: str | None = None
    dev: str | None = None
    features: Features = "u"
    scores: tuple[str, ...] = ("accuracy",)
    limits: tuple[int, int] | None = None
    note: str = ""


class SetTable(BaseModel):
    """The table of a suite."""

    model_config = ConfigDict(extra="forbid")

    parts: dict[str, SetPart]
    sets: dict[str, tuple[Edition, ...]] = {}  # for suites that train a probe
    averages: dict[str, tuple[str | tuple[str, ...], ...]]
    forums: dict[str, str] = {}  # CQADupStack's: name -> hub
    hub_notes: dict[str, str] = {}

    @field_validator("parts", mode="before")
    @classmethod
    def _named(cls, parts: dict[str, Any]) -> dict[str, Any]:
        """Use the key of a part as its name, unless it has a name."""
        return {key: {"name": key, **values} for key, values in parts.items()}

    @property
    def means(self) -> tuple[Average, ...]:
        """The averages that the suite reports."""
        return tuple(Average(label, parts) for label, parts in self.averages.items())

    def probed(self, parts: dict[str, SetPart]) -> dict[str, list[ProbedSet]]:
        """Build the editions of each set from these parts."""
        return {name: [_probed(name, edition, parts) for edition in editions] for name, editions in self.sets.items()}


def read_table(suite: str, folder: Path = FOLDER) -> SetTable:
    """Read and validate the table of a suite."""
    return SetTable.model_validate(yaml.load((folder / f"{suite}.yaml").read_text("utf-8"), LOADER))


def _probed(name: str, edition: Edition, parts: dict[str, SetPart]) -> ProbedSet:
    train, test, dev = (part and parts[part] for part in (edition.train, edition.test, edition.dev))
    assert isinstance(train, SetPart)
    return ProbedSet(
        name=name,
        train=train,
        test=test or None,
        dev=dev or None,
        **edition.model_dump(exclude={"train", "test", "dev"}),
    )
