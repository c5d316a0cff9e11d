"""Recipes for the terminal: what they contain, what a run would cost, and what it gave."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.report.formatting import duration
from sentloom.report.tables import plain_table

if TYPE_CHECKING:
    from sentloom.engine.needs import Need
    from sentloom.engine.plan import Plan, Recipe
    from sentloom.engine.stages import Forecast
    from sentloom.lab.results import Row


def recipe(name: str, read: "Recipe", whole: bool) -> RenderableType:
    """A built-in recipe: its title, and what its variants train on what, with the published mean or scores."""
    plans = [read.resolve(variant) for variant in read.variants] or [read.resolve()]
    head = f"{name}: {plans[0].title}" if plans[0].title else name
    if not whole:
        return Group(Text(head, style="bold"), *(Text(f"  {line}") for line in _in_short(plans)))
    table = plain_table(head, "variant", "base", "stages", "data", "published")
    for plan in plans:
        stages = " -> ".join(stage.method for stage in plan.stages) or "none"
        data = ", ".join(_files(plan))
        scores = {"mean": plan.published["mean"]} if "mean" in plan.published else plan.published
        printed = ", ".join(f"{scored} {score:.2f}" for scored, score in scores.items())
        table.add_row(*map(Text, (plan.name, _named(plan.base), stages, data, printed)))
    return table


def _named(model: str | None) -> str:
    """A model, with the first digits of its revision."""
    return re.sub(r"(@[0-9a-f]{7})[0-9a-f]{33}$", r"\1", model or "none")


def _repository(file: str) -> str | None:
    """The repository of data on the hub; None for a file."""
    from sentloom.data.inputs import hub_name

    match = None if Path(file).exists() else hub_name(file)
    return match and match[1]


def _files(plan: "Plan") -> list[str]:
    """The data of a plan, without the output of its own stages."""
    from sentloom.engine.artifacts import named_stage

    files = dict.fromkeys(file for stage in plan.stages for file in stage.sources)
    return [file for file in files if not named_stage(file)]


def _in_short(plans: Sequence["Plan"]) -> list[str]:
    """What the variants of a recipe train, from what, on what, and the range of their published means."""
    methods = sorted({stage.method for plan in plans for stage in plan.stages})
    data = dict.fromkeys(_repository(file) or Path(file).name for plan in plans for file in _files(plan))
    models = [model for plan in plans for model in _models(plan)]
    lines = [
        f"{len(plans):,} {'variant' if len(plans) == 1 else 'variants'}; {', '.join(methods) or 'none'}",
        f"base {', '.join(dict.fromkeys(_named(plan.base) for plan in plans))}",
        *([f"text-to-text model {', '.join(dict.fromkeys(models))}"] if models else []),
        f"data {', '.join(data) or 'none'}",
    ]
    return [*lines, *_published(plans)]


def _models(plan: "Plan") -> list[str]:
    from sentloom.engine.artifacts import named_stage

    writers = [stage for stage in plan.stages if stage.MODEL_KIND == "writer"]
    return [_named(model) for stage in writers for model in stage.models() if not named_stage(model)]


def _published(plans: Sequence["Plan"]) -> list[str]:
    """The range of the published means of the variants; without means, of the first set that has scores."""
    name = "mean"
    if not any(name in plan.published for plan in plans):
        name = next((scored for plan in plans for scored in plan.published), "")
    scores = [plan.published[name] for plan in plans if name in plan.published]
    what = "means" if name == "mean" else name
    return [f"published {what} {min(scores):.2f} to {max(scores):.2f}"] if scores else []


def forecasts(name: str, stages: Sequence["Forecast"]) -> RenderableType:
    """What a plan would do, stage by stage."""
    table = plain_table(f"{name}: per seed", "stage", "method", "shape", "rows", "batch", "steps", "time", numbers=4)
    for stage in stages:
        steps = (f"{stage.batch:,}", f"{stage.steps:,}") if stage.steps else ("", "")
        size = (str(stage.shape or ""), f"{stage.rows:,}", *steps)
        table.add_row(stage.stage, stage.method, *size, duration(stage.before + stage.seconds))
    notes = [f"{stage.stage}: {stage.note}" for stage in stages if stage.note]
    notes += [
        f"{stage.stage}: transductive, trains on {stage.leaked:,} sentences of the evaluation sets"
        for stage in stages
        if stage.leaked
    ]
    return Group(table, *map(Text, notes))


def outline(plan: "Plan", absent: Sequence["Need"]) -> RenderableType:
    """The stages of a plan whose cost is not known yet, and what is missing."""
    table = plain_table(plan.name, "stage", "method", "data")
    for stage in plan.stages:
        table.add_row(stage.name, stage.method, Text(", ".join(stage.sources)))
    missing = [f"missing: {need.what}, {need.name}" for need in absent if not need.on_hub]
    fetched = [f"to be downloaded from the hub: {need.what} {need.name}" for need in absent if need.on_hub]
    return Group(table, *map(Text, [*missing, *fetched]))


def training_results(title: str, rows: Sequence["Row"]) -> RenderableType:
    """What was made, and the scores of every plan that has an encoder."""
    from sentloom.lab.results import made_things, set_notes

    parts = [_made(title, things)] if (things := made_things(rows)) else []
    scored = [row for row in rows if row.base]
    return Group(*parts, *([_scores(title, scored)] if scored else []), *map(Text, set_notes(scored)))


def _made(title: str, things: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = plain_table(f"{title}: made", "stage", "method", "result", "folder", "time", numbers=1)
    for thing in things:
        cells = (thing["stage"], thing["method"], thing["result"], thing["place"])
        table.add_row(*map(Text, cells), duration(thing["seconds"]))
    return table


def _scores(title: str, rows: Sequence["Row"]) -> RenderableType:
    """Bases first, then every variant with its deviation over seeds and its difference from the base."""
    from sentloom.lab.results import cell, score_text, unlike_at, untouched

    sets = list(dict.fromkeys(name for row in rows for name in row.after))
    table = plain_table(title, "", *sets, "seeds", "time per seed", numbers=len(sets) + 2)
    best = {name: max(row.after[name] for row in rows if name in row.after) for name in sets}
    for label, scores in untouched(rows).items():
        unlike = unlike_at(rows, label)
        cells = [Text(score_text(scores[name], unlike=name in unlike) if name in scores else "") for name in sets]
        table.add_row(Text(f"{label}, untouched"), *cells, "", "")
    for row in rows:
        cells = [Text(cell(row, name), style="bold" if row.after.get(name) == best[name] else "") for name in sets]
        name = f"{row.name} (transductive)" if row.transductive else row.name
        table.add_row(Text(name), *cells, str(row.seeds), duration(row.seconds))
    return table
