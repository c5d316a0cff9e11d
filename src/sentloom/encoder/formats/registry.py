"""All formats of model folders. To add one, write its file in this package and list it here.

The list has what commands show before they import anything heavy; a format's file is imported when it is needed.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.encoder.formats.format import Format, Target

TORCH, AUTO = "torch", "auto"  # backends that are no targets: the model as it is, and the fastest


@dataclass(frozen=True)
class Listed:
    """A format's module, which has its `FORMAT`, and the names of its targets."""

    module: str
    targets: tuple[str, ...]
    backend: bool = False  # whether --backend has its targets, and `auto` tries them


LISTED = [  # if a folder has several formats, the first counts
    Listed(f"{__package__}.onnx", ("onnx", "onnx-int8"), backend=True),
    Listed(f"{__package__}.ctranslate2", ("ctranslate2", "ctranslate2-int8"), backend=True),
    Listed(f"{__package__}.static", ("static",)),
    Listed(f"{__package__}.ngrams", ()),
    Listed(f"{__package__}.sentence_transformers", ("sentence-transformers",)),
]


def target_names() -> list[str]:
    """What an encoder can be exported to."""
    return [name for listed in LISTED for name in listed.targets]


def tried_names() -> list[str]:
    """The targets that `auto` tries as backends."""
    return [name for listed in LISTED if listed.backend for name in listed.targets]


def backend_names() -> list[str]:
    """What can run an encoder on a CPU."""
    return [TORCH, AUTO, *tried_names()]


def format_of(folder: Path) -> "Format":
    """The format of a folder; if none recognises it, sentence-transformers', whose loader says what is missing."""
    return next((form for form in map(_format, LISTED) if form.holds(folder)), format_for("sentence-transformers"))


def format_for(target: str) -> "Format":
    """The format that a target is written in."""
    for listed in LISTED:
        if target in listed.targets:
            return _format(listed)
    raise InputError("to", f"{target!r} is unknown", f"one of {', '.join(target_names())}", "correct the name")


def target_named(name: str) -> "Target":
    """A target by name."""
    return format_for(name).targets[name]


def _format(listed: Listed) -> "Format":
    form: Format = import_module(listed.module).FORMAT
    return form
