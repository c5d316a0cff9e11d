"""Options of writing as a user gives them: `top_p=0.9,seed=2` or a mapping."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from sentloom.errors import InputError, checked
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.prompts import KINDS, Kind
from sentloom.writing.synthesize import Execution

Given = str | Mapping[str, Any] | None


class Running(Execution):
    """How a single call runs; a recipe says these for all of its stages."""

    rows: int | None = Field(default=None, ge=1)  # of the raw text, from the first
    device: str | None = None
    precision: Literal["fp32", "bf16"] | None = None


def parsed(where: str, given: Given) -> dict[str, Any]:
    """The names and values of `top_p=0.9,seed=2`; a mapping as it is."""
    if not isinstance(given, str):
        return dict(given or {})
    items = [item.partition("=") for item in given.split(",") if item.strip()]
    if wrong := [name for name, equals, _ in items if not equals]:
        raise InputError(where, f"found {wrong[0].strip()!r}", "NAME=VALUE,NAME=VALUE", "give every name a value")
    return {name.strip(): value.strip() for name, _, value in items}


def chosen_kinds(given: str | Sequence[str]) -> tuple[Kind, ...]:
    """One kind or several: `query`, or `entailment,contradiction`."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if wrong := [name for name in names if name not in KINDS] or ([] if names else [""]):
        raise InputError("kind", f"there is no kind {wrong[0]!r}", f"one of {', '.join(KINDS)}", "choose one of these")
    return tuple(kind for kind in KINDS if kind in names)


def chosen_filters(given: Given) -> Filtering:
    """The filters: the name of a preset, changes to one (`official-code,words=2`), or changes to the default."""
    preset, rest = ("default", given)
    if isinstance(given, str) and "=" not in given.partition(",")[0]:
        preset, _, rest = (part.strip() for part in given.partition(","))
        preset = preset or "default"
    if preset not in PRESETS:
        problem = f"there is no preset {preset!r}"
        raise InputError("filters", problem, f"one of {', '.join(PRESETS)}", "choose one of these")
    return checked(Filtering, "filters", {**PRESETS[preset].model_dump(), **parsed("filters", rest)})
