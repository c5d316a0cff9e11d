"""Check the arguments of public functions against their annotations.

A value of another type is refused with a sentence, instead of failing somewhere inside. Where the words for a type say
too little, the annotation has what was expected, and may have how to fix it: Annotated[str, "a time", "say 10m"].
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce, wraps
from numbers import Integral, Real
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from sentloom.errors import InputError, option

P = ParamSpec("P")
R = TypeVar("R")
NUMBERS: dict[Any, type] = {int: Integral, float: Real}  # numpy's too
WORDS = {  # for one value and for several
    str: ("text", "texts"),
    Path: ("a path", "paths"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "truth values"),
}
LOOKED_INTO = (Sequence, Mapping)
SHOWN = 40  # characters of a value


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that do not have the types of the function's annotations.

    >>> @typed
    ... def cut(text: str, length: int | None = None) -> str:
    ...     return text[:length]
    >>> cut("sentence", 4)
    'sent'
    >>> cut("sentence", "4")
    Traceback (most recent call last):
    sentloom.errors.InputError: length: found '4'. Expected a whole number, or None.
    See help(sentloom.cut).
    """
    signature = inspect.signature(function)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # a missing or an unknown name, about which the call below raises Python's own error
            given = {}
        for name, value in given.items():
            _refuse_other(name, value, signature.parameters[name].annotation, function.__qualname__)
        return function(*args, **kwargs)

    return checked


def _refuse_other(name: str, value: object, hint: Any, function: str) -> None:
    if has_type(value, hint):
        return
    fixes = [fix for kind in _choices(hint) if get_origin(kind) is Annotated for fix in get_args(kind)[2:]]
    fix = fixes[0] if fixes else f"see help(sentloom.{function})"
    raise InputError(option(name), f"found {kind_of(_culprit(value, hint))}", _expected(hint), fix)


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value has an annotated type, and what is in a list or dict has its own.

    >>> has_type([384, 256], Sequence[int]), has_type("384", Sequence[int]), has_type(True, int)
    (True, False, False)
    """
    kind = get_origin(hint) or hint
    if kind in (Any, inspect.Parameter.empty) or isinstance(kind, str | TypeVar):
        return True
    if kind is Annotated:
        return has_type(value, _bare(hint))
    if kind in (Union, UnionType):
        return any(has_type(value, choice) for choice in get_args(hint))
    if kind is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    if kind in LOOKED_INTO:
        return _is_like(value, kind) and not [*_misfits(value, hint)]
    if kind is Callable:
        return callable(value)
    return isinstance(value, NoneType if kind is None else kind)


def kind_of(value: object) -> str:
    """A value in an error: itself if it is short and plain, else its type.

    >>> kind_of(None), kind_of(0.5), kind_of("text"), kind_of({}), kind_of([1])
    ('None', '0.5', "'text'", 'a value of type dict', 'a list')
    """
    plain = value is None or isinstance(value, str | bool | int | float)
    if plain and len(repr(value)) <= SHOWN:
        return repr(value)
    return "a list" if type(value) is list else f"a value of type {type(value).__name__}"


def _is_like(value: object, kind: Any) -> bool:
    """A string is a sequence too, but nobody means it as a list of letters."""
    return isinstance(value, kind) and not isinstance(value, str | bytes)


def _misfits(value: Any, hint: Any) -> Iterator[object]:
    """The items of a list, or the keys and values of a dict, that do not have their type."""
    *keys, inner = get_args(hint)
    yield from (name for key in keys for name in value if not has_type(name, key))
    yield from (item for item in (value.values() if keys else value) if not has_type(item, inner))


def _culprit(value: Any, hint: Any) -> object:
    """What is wrong in a list or dict, if one was expected; else the value itself."""
    kinds = [kind for choice in _choices(hint) for kind in _choices(_bare(choice))]
    containers = [kind for kind in kinds if get_origin(kind) in LOOKED_INTO and _is_like(value, get_origin(kind))]
    return next((misfit for kind in containers for misfit in _misfits(value, kind)), value)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def plain_type(hint: Any) -> Any:
    """A type without what is said about it, as a signature shows it.

    >>> plain_type(Annotated[str, "a time", "say 10m"] | None)
    str | None
    """
    if get_origin(hint) is Annotated:
        return plain_type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return reduce(or_, map(plain_type, get_args(hint)))
    return hint


def _choices(hint: Any) -> Iterator[Any]:
    """The types that an annotation allows, one by one."""
    if get_origin(hint) in (Union, UnionType):
        for choice in get_args(hint):
            yield from _choices(choice)
    else:
        yield hint


def _expected(hint: Any) -> str:
    """As in "text, a path or a list of texts, or None"."""
    kinds = list(_choices(hint))
    said = _one_of(dict.fromkeys(_word(kind) for kind in kinds if kind is not NoneType))
    return f"{said}, or None" if NoneType in kinds else said


def _word(hint: Any, several: bool = False) -> str:
    kind = get_origin(hint) or hint
    if kind is Annotated:
        return str(get_args(hint)[1])
    if kind is Literal:
        return _one_of(map(repr, get_args(hint)))
    if kind is Sequence:
        return "a list of " + _one_of(dict.fromkeys(_word(item, True) for item in _choices(get_args(hint)[0])))
    if kind is Mapping:
        return "a dict"
    if kind is Callable:
        return "a function"
    if kind in WORDS:
        return WORDS[kind][several]
    name = kind.__name__
    return f"{name}s" if several else f"{'an' if name[0] in 'AEIOaeiou' else 'a'} {name}"


def _one_of(words: Any) -> str:
    """As in "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
