"""What installed packages add to sentloom through entry points: methods, stages, routes, suites, models.

The lab is such a package: the product finds its stages, suites and baselines here, and never imports it.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from sentloom.errors import InputError

Thing = TypeVar("Thing")


THE_LABS = ("sentloom.models", "sentloom.stages", "sentloom.suites")  # the groups in which the lab has an entry point


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group: first the lab's, then others in the order of their names. Nothing is imported."""
    points = sorted(entry_points(group=group), key=lambda point: (not _is_ours(point), point.name, point.value))
    if group in THE_LABS and not any(map(_is_ours, points)):
        problem = f"its entry point {group} is missing: its code is newer than its installation"
        raise InputError("sentloom", problem, "", "install it again, from a checkout with `pip install -e .`")
    return points


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == "sentloom"


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Things by name: our own, then those of installed packages, each of whose entry points is a mapping of names.

    The packages are imported when a name is asked for that is not our own. The first thing with a name keeps it.
    """

    def __init__(self, group: str, own: Mapping[str, Thing] | None = None) -> None:
        self.group, self.own = group, dict(own or {})

    @cached_property
    def _everything(self) -> dict[str, Thing]:
        things = dict(self.own)
        for point in offered(self.group):
            for name, thing in point.load().items():
                things.setdefault(name, thing)
        return things

    def __getitem__(self, name: str) -> Thing:
        return self.own[name] if name in self.own else self._everything[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._everything)

    def __len__(self) -> int:
        return len(self._everything)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._everything
