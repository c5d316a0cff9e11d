"""Models that are scored, by name: encoders, and what installed packages offer besides, such as the lab's baselines.

A package offers functions through the entry point group `sentloom.models`. Each takes a name, and returns None if it is
not one of its own.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

from sentloom.encoder import Encoder
from sentloom.encoder.device import chosen
from sentloom.encoder.locate import catalogue_entry, is_model, refuse_absent
from sentloom.errors import InputError
from sentloom.evaluation.bench import Model
from sentloom.plugins import offered


class NamedModel(Protocol):
    """A model of another kind than an encoder, by the parts of its name."""

    @property
    def model(self) -> str | None:
        """The encoder that it is made of."""

    @property
    def files(self) -> tuple[str, ...]:
        """The data that it reads."""

    def open(self, pooling: str | None = None) -> Model:
        """Load it; `pooling` overrides that of its encoder."""


@cache
def _parsers() -> tuple[Callable[[str], NamedModel | None], ...]:
    return tuple(point.load() for point in offered("sentloom.models"))


def named_model(name: str) -> NamedModel | None:
    """A model that is no encoder; None if the name is that of an encoder.

    No package is asked about model folders and names of the catalogue, so that a fit of one imports no lab.
    """
    if catalogue_entry(name) or is_model(name):
        return None
    return next((model for parse in _parsers() if (model := parse(name)) is not None), None)


def encoder_of(name: str) -> str | None:
    """The encoder that a named model is, or is made of."""
    other = named_model(name)
    return other.model if other else name


def open_model(name: str, pooling: str | None = None) -> Model:
    """Load an encoder or another model by name; an encoder that cannot run in the chosen precision is refused."""
    if other := named_model(name):
        return other.open(pooling)
    return Encoder.load(name, pooling=pooling, precision=chosen().precision)


def check_model(name: str) -> None:
    """Refuse the name of a model that is not there, without loading it."""
    other, encoder = named_model(name), encoder_of(name)
    if encoder:
        refuse_absent(encoder)
    for file in other.files if other and encoder is None else ():
        if not Path(file).is_file():
            raise InputError(file, "there is no such file", "word vectors as text", "check the path")
