"""Values inside objects and lists, by names such as `ticket.subject` or `messages[-1].content`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Steps = tuple[str | int, ...]
STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
DEEPEST = 4  # steps of the names that a message suggests
MOST_SUGGESTED = 8


def parse_path(name: str) -> Steps | None:
    """The steps of a name, keys and places in lists; None if it is no such name.

    >>> parse_path("messages[-1].content")
    ('messages', -1, 'content')
    """
    steps: list[str | int] = []
    at = 0
    while at < len(name):
        step = STEP.match(name, at)
        if step is None or (step[0].startswith(".") and not steps) or (step[2] and not steps):
            return None
        steps.append(int(step[2]) if step[2] else step[1])
        at = step.end()
    return tuple(steps) if len(steps) > 1 else None


def value_at(value: Any, path: Steps) -> Any:
    """What is at the end of a path; None if there is nothing. A key of a list is taken of every object in it."""
    for at, step in enumerate(path):
        if isinstance(value, list) and isinstance(step, str):
            return [value_at(item, path[at:]) for item in value]
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def with_inner(rows: Sequence[Mapping[str, Any]], paths: Mapping[str, Steps]) -> list[dict[str, Any]]:
    """Rows with the values at some paths under the names of these."""
    return [{**row, **{name: value_at(row, path) for name, path in paths.items()}} for row in rows]


def suggested(row: Mapping[str, object]) -> list[str]:
    """Names of texts inside the objects and lists of a row, for a message."""
    return [name for name in _leaves("", row, 0) if parse_path(name)][:MOST_SUGGESTED]


def _leaves(name: str, value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield name
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner, depth + 1)
    elif isinstance(value, list) and value and isinstance(value[-1], Mapping) and depth < DEEPEST:
        yield from _leaves(f"{name}[-1]", value[-1], depth + 1)
