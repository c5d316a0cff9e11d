"""What encoders of the catalogue score without any training, as benchmarks/bases.py measured it (docs/models.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sentloom.encoder.catalogue.entries import Entry
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.places import is_here


@dataclass(frozen=True)
class MeasuredSet:
    """The main scores on one set, times 100."""

    language: str  # code
    scores: Mapping[str, float]  # by the name of the encoder


@cache
def measured_sets() -> tuple[MeasuredSet, ...]:
    """All sets of the table."""
    sets = json.loads(files(__package__).joinpath("measured.json").read_text("utf-8"))["sets"].values()
    return tuple(
        MeasuredSet(row["language"], {name: value for name, (value, *_) in row["scores"].items()}) for row in sets
    )


def mean_score(name: str, language: str | None = None) -> float | None:
    """The mean over the sets of a language, or over all; None: it was not measured on them."""
    asked = [row for row in measured_sets() if language in (None, row.language)]
    scores = [row.scores[name] for row in asked if name in row.scores]
    return sum(scores) / len(scores) if scores else None


def gain(better: str, than: str, language: str) -> float | None:
    """How many points an encoder scores more than another one in a language; None: both were not measured in it."""
    high, low = mean_score(better, language), mean_score(than, language)
    return None if high is None or low is None else high - low


def best_for(language: str) -> Entry | None:
    """The base that was made for a language and scores best in it; None: there is none in the catalogue."""
    made_for = [entry for entry in _bases() if language in entry.languages]
    return max(made_for, key=lambda entry: mean_score(entry.name, language) or 0.0, default=None)


def bases_here() -> tuple[str, ...]:
    """The bases on this machine, those that score best first."""
    here = [entry.name for entry in _bases() if is_here(entry)]
    return tuple(sorted(here, key=lambda name: -(mean_score(name) or 0.0)))


def _bases() -> list[Entry]:
    """The encoders that a fit can start from."""
    return [entry for entry in CATALOGUE.values() if entry.use == "encoder" and entry.trainable]
