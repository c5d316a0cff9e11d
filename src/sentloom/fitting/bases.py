"""The bases of a fit: what routes start from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.encoder.lora import require_peft
from sentloom.encoder.prompts import is_asymmetric
from sentloom.encoder.read_only import ReadOnlyBackbone, refuse_changes
from sentloom.encoder.shared import shared_encoder
from sentloom.errors import InputError, MissingPart, option
from sentloom.fitting.request import DIMENSIONS_FIX, Request

# Weights, gradients and the two moments of AdamW take 16 bytes a parameter: 8 GB before the first activation.
LARGE = 500_000_000  # parameters, from which on adapters are trained instead


@dataclass(frozen=True)
class Base:
    """An encoder that routes start from."""

    name: str  # as the user gave it
    path: str  # as stages name it
    label: str  # in the names of routes
    encoder: Encoder
    large: int = LARGE  # from so many parameters on, adapters are trained
    languages: tuple[str, ...] = ()  # codes of those that it was made for; empty: unknown
    made_for: str = ""  # the same in words

    @property
    def parameters(self) -> int:
        """The size of its backbone."""
        return sum(one.numel() for one in self.encoder.backbone.parameters())

    @property
    def is_large(self) -> bool:
        """Whether adapters are trained instead of all weights."""
        return self.parameters >= self.large

    @property
    def is_asymmetric(self) -> bool:
        """Whether it was trained with different prompts for queries and documents."""
        return is_asymmetric(self.encoder.prompts)


def load_bases(request: Request, large: int = LARGE) -> tuple[Base, ...]:
    """Load every base; refuse what cannot be trained from it as asked."""
    short = [Path(name).name for name in request.bases]
    labels = short if len(set(short)) == len(short) else request.bases
    named = zip(request.bases, request.base_paths, labels, strict=True)
    found = tuple(Base(name, path, label, shared_encoder(name), large) for name, path, label in named)
    for one in found:
        if isinstance(one.encoder.backbone, ReadOnlyBackbone):
            refuse_changes(one.name)
        _refuse_too_many_dimensions(one, request.dimensions)
        if one.is_large:
            _refuse_no_adapters(one)
    return found


def _refuse_too_many_dimensions(base: Base, dimensions: Sequence[int]) -> None:
    own = base.encoder.dimension
    if (most := max(dimensions, default=0)) > own:
        problem = f"{most} dimensions are asked for, and the vectors of {base.name} have {own}"
        raise InputError(option("dimensions"), problem, f"{own} or fewer", DIMENSIONS_FIX)


def _refuse_no_adapters(base: Base) -> None:
    try:
        require_peft()
    except MissingPart as error:
        size = f"it has {base.parameters / 1e6:,.0f} million parameters"
        problem = f"{size}; from {base.large / 1e6:,.0f} million on, adapters (LoRA) are trained, and {error.problem}"
        raise MissingPart(base.name, problem, "", error.fix) from None


def base_at(bases: Sequence[Base], path: str | None) -> Base:
    """The base that a plan starts from."""
    return next((one for one in bases if one.path == path), bases[0])
