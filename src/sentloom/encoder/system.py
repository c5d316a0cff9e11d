"""What a model's search runs besides vectors: words, and a re-ranker. `fit` proves it and the model's folder keeps it.

It is the key `system` of sentloom.json, and a search without it is one by vectors alone.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from sentloom.encoder.model_files import find, read_json, wrong_value
from sentloom.encoder.settings import OURS

KEY = "system"
P = TypeVar("P")


@dataclass(frozen=True)
class Fusion:
    """Words beside vectors: a score is (1 - weight) times that of the vectors, and weight times BM25's."""

    weight: float
    stemming: str = ""  # a Snowball stemmer; "": words count as they are written
    gain: float | None = None  # over vectors alone, on test rows, in points; None: nothing was tested
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reranking:
    """A cross-encoder that reads the first results again, whose score is fused in the same way."""

    model: str  # a name of the catalogue, a folder or a hub name
    weight: float
    depth: int  # results that it reads
    gain: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class System:
    """A search: by vectors, and by what is here."""

    fusion: Fusion | None = None
    reranking: Reranking | None = None

    @property
    def word_weight(self) -> float:
        """The weight of words."""
        return self.fusion.weight if self.fusion else 0.0

    @property
    def rerank_weight(self) -> float:
        """The weight of the re-ranker."""
        return self.reranking.weight if self.reranking else 0.0

    def recorded(self) -> dict[str, Any]:
        """Its parts, for sentloom.json."""
        return {name: part for name, part in asdict(self).items() if part is not None}

    def __str__(self) -> str:
        parts = ["vectors"]
        if self.fusion and self.fusion.weight:
            stemmed = f", {self.fusion.stemming} stems" if self.fusion.stemming else ""
            parts.append(f"words (weight {self.fusion.weight:g}{stemmed})")
        if self.reranking and self.reranking.weight:
            reads = f"weight {self.reranking.weight:g}, the first {self.reranking.depth}"
            parts.append(f"the re-ranker {self.reranking.model} ({reads})")
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


VECTORS_ALONE = System()


def read_system(folder: Path) -> System:
    """The system that a model folder records."""
    path = find(folder, OURS)
    recorded = read_json(path).get(KEY) if path else None
    if recorded is None:
        return VECTORS_ALONE
    try:
        system = System(_part(Fusion, recorded.get("fusion")), _part(Reranking, recorded.get("reranking")))
        weights = (system.word_weight, system.rerank_weight)
        if all(isinstance(weight, int | float) and 0 <= weight <= 1 for weight in weights):
            return system
    except (AttributeError, TypeError):
        pass
    raise wrong_value(folder / OURS, KEY, recorded, "a fusion and a re-ranking, each with a weight between 0 and 1")


def _part(kind: Callable[..., P], recorded: dict[str, Any] | None) -> P | None:
    """A part from what JSON has, where an interval is a list."""
    return (
        kind(**{**recorded, "interval": recorded.get("interval") and tuple(recorded["interval"])}) if recorded else None
    )
