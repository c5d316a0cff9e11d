"""Routes that the user gives, such as the variants of a recipe: they race with their own lengths.

Every file that a stage reads is an input of the fit: some of its rows are held out, and the stages train on the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentloom.fitting.inputs import InputSource
from sentloom.fitting.routes import Route
from sentloom.pipeline.references import named_stage
from sentloom.pipeline.stages import DataStage, Stage


@dataclass(frozen=True)
class GivenRoutes:
    """Routes that the user gives, with the base and the seed of all of them."""

    base: str
    seed: int
    routes: tuple[Route, ...]
    sha256: str  # of everything that is run

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """Every file that a stage reads."""
        by_key = {_key(source): source for route in self.routes for stage in route.stages for source in _files(stage)}
        return tuple(by_key.values())

    def reading(self, files: Sequence[Path]) -> "GivenRoutes":
        """The routes with the files of training rows instead of their sources, in the same order."""
        instead = dict(zip(map(_key, self.sources), map(str, (file.resolve() for file in files)), strict=True))
        routes = [
            replace(route, stages=tuple(_reading(stage, instead) for stage in route.stages)) for route in self.routes
        ]
        return replace(self, routes=tuple(routes))


def _files(stage: Stage) -> list[InputSource]:
    """The files that a stage reads."""
    if not isinstance(stage, DataStage):
        return []
    return [InputSource(name, stage.shape, stage.columns) for name in stage.data if not named_stage(name)]


def _key(source: InputSource) -> tuple[object, ...]:
    return source.name, source.shape, tuple(sorted((source.columns or {}).items()))


def _reading(stage: Stage, instead: dict[tuple[object, ...], str]) -> Stage:
    """A stage that reads training rows instead of whole files."""
    if not isinstance(stage, DataStage) or not _files(stage):
        return stage
    names = {source.name: instead[_key(source)] for source in _files(stage)}
    data = tuple(names.get(name, name) for name in stage.data)
    return stage.model_copy(update={"data": data, "shape": None, "columns": None})
