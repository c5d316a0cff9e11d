"""What installed packages add to sentloom through entry points: methods, stages, routes, suites, models.

The lab is such a package: the product finds its stages, suites and baselines here, and never imports it.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group in the order of their names. Nothing is imported."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, point.value))


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Things by name: our own, then those of installed packages, each of whose entry points is a mapping of names.

    The packages are imported when a name is asked for that is not our own.
    """

    def __init__(self, group: str, own: Mapping[str, Thing] | None = None) -> None:
        self.group, self.own = group, dict(own or {})

    @cached_property
    def _everything(self) -> dict[str, Thing]:
        added = {name: thing for point in offered(self.group) for name, thing in point.load().items()}
        return {**self.own, **{name: thing for name, thing in added.items() if name not in self.own}}

    def __getitem__(self, name: str) -> Thing:
        return self.own[name] if name in self.own else self._everything[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._everything)

    def __len__(self) -> int:
        return len(self._everything)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._everything
