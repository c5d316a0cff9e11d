"""Scores published in papers, with their known faults, and their table beside the scores of models."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator
from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.evaluation.results import SuiteResult
from sentloom.report.score_tables import PrintedRow, sets_across

Aggregation = Literal["all", "wmean", "unknown"]  # how the sub-sets of STS12 to STS16 were combined


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedRow(_Strict):
    """A model's row in a table of a paper. A row without scores has only an average."""

    paper: str
    table: str
    suite: str
    model: str  # as printed
    setting: str  # as printed beside the name: data, pooling
    quoted: str  # the paper it is quoted from; "" for its own
    metrics: Mapping[str, str]  # set -> the name of its score, or "unknown"
    aggregation: Aggregation | None
    scores: Mapping[str, float]  # set -> score, times 100
    average: float | None  # as printed
    faults: tuple[str, ...]  # wrong, or not comparable with other rows

    @property
    def source(self) -> str:
        """The paper and table, such as "GenSE, Table 2"."""
        return f"{self.paper}, {self.table}"

    @property
    def label(self) -> str:
        """Model and setting, which together are unique in a table."""
        return f"{self.model} ({self.setting})" if self.setting else self.model


class _Row(_Strict):
    model: str
    setting: str = ""
    quoted: str = ""
    aggregation: Aggregation | None = None
    scores: tuple[float | None, ...]
    average: float | None = None
    faults: tuple[str, ...] = ()


class _Table(_Strict):
    """A table as written in YAML: faults and aggregation apply to all rows, but a row's own aggregation wins."""

    table: str
    suite: str
    sets: tuple[str, ...]
    metric: str | tuple[str, ...]  # one for all sets, or one per set
    aggregation: Aggregation | None = None
    faults: tuple[str, ...] = ()
    rows: tuple[_Row, ...]

    @model_validator(mode="after")
    def _as_many_as_sets(self) -> "_Table":
        wrong = [row.model for row in self.rows if row.scores and len(row.scores) != len(self.sets)]
        if wrong or not (isinstance(self.metric, str) or len(self.metric) == len(self.sets)):
            raise ValueError(f"{self.table}: the number of scores or metrics differs from the number of sets: {wrong}")
        return self

    def published(self, paper: str) -> list[PublishedRow]:
        """Return its rows as self-contained objects."""
        metrics = [self.metric] * len(self.sets) if isinstance(self.metric, str) else self.metric
        return [
            PublishedRow(
                paper=paper,
                table=self.table,
                suite=self.suite,
                model=row.model,
                setting=row.setting,
                quoted=row.quoted,
                metrics=dict(zip(self.sets, metrics, strict=True)),
                aggregation=row.aggregation or self.aggregation,
                scores={name: score for name, score in zip(self.sets, row.scores, strict=False) if score is not None},
                average=row.average,
                faults=(*self.faults, *row.faults),
            )
            for row in self.rows
        ]


class _Paper(_Strict):
    paper: str
    citation: str
    tables: tuple[_Table, ...]


def published(suite: str) -> list[PublishedRow]:
    """Return the published rows of a suite: sts, transfer, sentglue, multilingual, domain, afs or glue."""
    return [row for row in _all_rows() if row.suite == suite]


@cache
def _all_rows() -> tuple[PublishedRow, ...]:
    folder = Path(str(files("sentloom.lab"))) / "published_scores"
    papers = [_Paper.model_validate(yaml.safe_load(path.read_text("utf-8"))) for path in sorted(folder.glob("*.yaml"))]
    return tuple(row for paper in papers for table in paper.tables for row in table.published(paper.paper))


def with_published(result: SuiteResult, models: Sequence[str]) -> RenderableType:
    """The models, then the published rows of a suite, with the source and the known faults of each."""
    rows = published(result.name)
    if not rows:
        return Text(f"{result.name}: no published scores; whole suites such as --suite sts have them", style="yellow")
    faults: dict[str, list[str]] = {}
    for number, row in enumerate(rows, start=1):
        for fault in row.faults:
            faults.setdefault(fault, []).append(f"({number})")
    lines = [Text(f"fault of {' '.join(numbers)}: {fault}", style="yellow") for fault, numbers in faults.items()]
    printed = [
        PrintedRow(_printed_label(number, row), row.scores, row.average) for number, row in enumerate(rows, start=1)
    ]
    return Group(sets_across(result, models, printed), *lines)


def _printed_label(number: int, row: PublishedRow) -> str:
    joined = f", {row.aggregation}" if row.aggregation not in (None, "all") else ""
    return f"({number}) {row.label}, {row.source}{joined}"
