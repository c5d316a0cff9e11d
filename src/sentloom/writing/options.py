"""Options of writing as a user gives them, checked."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sentloom.errors import InputError

Values = TypeVar("Values", bound=BaseModel)


def checked(model: type[Values], values: Mapping[str, Any]) -> Values:
    """The options as a model; the first one that it refuses is reported."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ", ".join(map(str, first["loc"])) or "synthesize"
        raise InputError(where, first["msg"], "", "correct it") from None
