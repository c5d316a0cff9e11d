"""Tables for the terminal, from numbers that others computed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentloom.corpus.docstrings import Corpus
from sentloom.data.dataset import Dataset
from sentloom.data.limits import listed
from sentloom.hygiene.cleaning import CleanReport
from sentloom.hygiene.inspection import Distribution, Inspection
from sentloom.hygiene.leaks import Leaks

if TYPE_CHECKING:
    from sentloom.pipeline.forecast import Forecast
    from sentloom.pipeline.needs import Need
    from sentloom.pipeline.plan import Making, Plan, Recipe, Stage
    from sentloom.pipeline.results import Row
    from sentloom.search.mining import MineReport

ANSWER_WIDTH = 160  # characters of a found text


def plain_table(title: str, *columns: str, numbers: int = 0) -> Table:
    """A table without lines between rows; its last `numbers` columns hold numbers."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for place, column in enumerate(columns):
        right = place >= len(columns) - numbers
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def data_summary(name: str, data: Dataset) -> RenderableType:
    """What was read, and what its columns were taken for."""
    roles = ", ".join(role if own == role else f"{role} = {own!r}" for role, own in data.used.items())
    if len(data.files) == 1 and data.files[0].startswith(f"{name}/"):
        name = data.files[0]  # which files of a zip file were taken, and which of them is the source
    lines = [f"{len(data):,} rows ({roles})"]
    lines += [f"  {note}" for note in data.notes]
    if data.ignored:
        lines.append(f"  columns not used: {listed(data.ignored)}")
    lines += [f"  skipped: {count:,} {what}" for what, count in data.skipped.items()]
    return Text.assemble(f"{name}: ", (str(data.shape), "bold"), ", ", "\n".join(lines))


def mining(report: "MineReport") -> RenderableType:
    """What mining found, and why candidates were passed over."""
    return Text(
        f"{report.rows:,} pairs, {report.kept:,} with hard negatives ({report.negatives:,} in all); candidates passed "
        f"over: {report.known_right:,} known to be right, {report.too_near:,} within the margin"
    )


def recipe(name: str, read: "Recipe", whole: bool) -> RenderableType:
    """A shipped recipe: its title, and of its variants what each trains on what, with the published mean or scores."""
    plans = [read.resolve(variant) for variant in read.variants] or [read.resolve()]
    head = f"{name}: {plans[0].title}" if plans[0].title else name
    if not whole:
        return Group(Text(head, style="bold"), *(Text(f"  {line}") for line in _in_short(plans)))
    table = plain_table(head, "variant", "base", "stages", "data", "published")
    for plan in plans:
        stages = " -> ".join(stage.method for stage in _all_stages(plan)) or "none"
        data = ", ".join(_files(plan))
        scores = {"mean": plan.published["mean"]} if "mean" in plan.published else plan.published
        printed = ", ".join(f"{one} {score:.2f}" for one, score in scores.items())
        table.add_row(*map(Text, (plan.name, plan.base or "none", stages, data, printed)))
    return table


def _all_stages(plan: "Plan") -> list["Making | Stage"]:
    return [*plan.making, *plan.stages]


def _files(plan: "Plan") -> list[str]:
    """The data of a plan, but for what its own stages make."""
    from sentloom.pipeline.references import named_stage

    files = dict.fromkeys(file for stage in _all_stages(plan) for file in stage.data)
    return [file for file in files if not named_stage(file)]


def _in_short(plans: Sequence["Plan"]) -> list[str]:
    """What the variants of a recipe train, from what, on what, and the span of the means published for them."""
    methods = sorted({stage.method for plan in plans for stage in _all_stages(plan)})
    data = dict.fromkeys(Path(file).name for plan in plans for file in _files(plan))
    models = [model for plan in plans for model in _models(plan)]
    lines = [
        f"{_count(len(plans), 'variant')}; {', '.join(methods) or 'none'}",
        f"base {', '.join(dict.fromkeys(plan.base or 'none' for plan in plans))}",
        *([f"text-to-text model {', '.join(dict.fromkeys(models))}"] if models else []),
        f"data {', '.join(data) or 'none'}",
    ]
    return [*lines, *_published(plans)]


def _models(plan: "Plan") -> list[str]:
    from sentloom.pipeline.references import named_stage

    return [stage.model for stage in plan.making if not named_stage(stage.model)]


def _published(plans: Sequence["Plan"]) -> list[str]:
    """The span of the means that papers print for the variants; without means, of the one set that all have."""
    name = "mean"
    if not any(name in plan.published for plan in plans):
        name = next((one for plan in plans for one in plan.published), "")
    scores = [plan.published[name] for plan in plans if name in plan.published]
    what = "means" if name == "mean" else name
    return [f"published {what} {min(scores):.2f} to {max(scores):.2f}"] if scores else []


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def forecasts(name: str, found: Sequence["Forecast"]) -> RenderableType:
    """What a plan would do, stage by stage."""
    table = plain_table(
        f"{name}: a seed takes", "stage", "method", "shape", "rows", "batch", "steps", "time", numbers=4
    )
    for one in found:
        row = (f"{one.batch:,}", f"{one.steps:,}", _duration(one.seconds)) if one.steps else ("", "", "")
        table.add_row(one.stage, one.method, str(one.shape), f"{one.rows:,}", *row)
    notes = [f"{one.stage}: {one.note}" for one in found if one.note]
    notes += [f"{one.stage}: views of {one.views:,} sentences are made first" for one in found if one.views]
    notes += [
        f"{one.stage}: transductive, {one.leaked:,} sentences that are scored on are trained on"
        for one in found
        if one.leaked
    ]
    return Group(table, *map(Text, notes))


def outline(plan: "Plan", absent: Sequence["Need"]) -> RenderableType:
    """The stages of a plan that cannot be timed yet, and what is missing."""
    table = plain_table(plan.name, "stage", "method", "data")
    every: list[Making | Stage] = [*plan.making, *plan.stages]
    for one in every:
        table.add_row(one.name, one.method, Text(", ".join(one.data)))
    fetched = [f"to be fetched from the hub: {one.what} {one.name}" for one in absent if one.on_hub]
    missing = [f"missing: {one.what}, {one.name}" for one in absent if not one.on_hub]
    return Group(table, *map(Text, [*missing, *fetched]))


def training_results(title: str, rows: Sequence["Row"]) -> RenderableType:
    """What was made, and the scores of all that have an encoder."""
    from sentloom.pipeline.results import made_things

    parts = [_made(title, things)] if (things := made_things(rows)) else []
    scored = [row for row in rows if row.base]
    return Group(*parts, *([_scores(title, scored)] if scored else []))


def _made(title: str, things: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What the making stages gave."""
    table = plain_table(f"{title}: made", "stage", "method", "result", "folder", "time", numbers=1)
    for one in things:
        cells = (one["stage"], one["method"], one["result"], one["place"])
        table.add_row(*map(Text, cells), _duration(one["seconds"]))
    return table


def _scores(title: str, rows: Sequence["Row"]) -> RenderableType:
    """Untouched bases, then every variant with the deviation over seeds and the distance from its base as it is."""
    from sentloom.pipeline.results import cell, untouched

    sets = list(dict.fromkeys(name for row in rows for name in row.after))
    table = plain_table(title, "", *sets, "seeds", "time a seed", numbers=len(sets) + 2)
    best = {name: max(row.after[name] for row in rows if name in row.after) for name in sets}
    for label, scores in untouched(rows).items():
        cells = [Text(f"{scores[name]:.2f}" if name in scores else "") for name in sets]
        table.add_row(Text(f"{label}, untouched"), *cells, "", "")
    for row in rows:
        cells = [Text(cell(row, name), style="bold" if row.after.get(name) == best[name] else "") for name in sets]
        name = f"{row.name} (transductive)" if row.transductive else row.name
        table.add_row(Text(name), *cells, str(row.seeds), _duration(row.seconds))
    return table


def _duration(seconds: float) -> str:
    """For people: 48 s, 12 min, 3.4 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def inspection(found: Inspection) -> RenderableType:
    """Lengths, duplicates, scripts, labels or scores, and what is worth a warning."""
    lengths = plain_table("Lengths", "column", "unit", "least", "25%", "median", "75%", "95%", "most", numbers=6)
    for one in found.lengths:
        lengths.add_row(one.column, one.unit, *_spread(one.distribution))
    near = found.near_duplicates
    of = "all rows" if near.whole else f"a sample of {near.sampled:,} rows"
    facts = [
        ("repeated rows", f"{found.duplicate_rows:,}"),
        ("repeated sentences", f"{found.duplicate_sentences:,} of {found.sentences:,}"),
        (f"near duplicates (Jaccard {near.threshold})", f"{near.repeats:,} in {of}"),
        ("scripts", ", ".join(f"{name} {share:.1%}" for name, share in found.scripts.items())),
    ]
    if found.labels:
        facts.append(("labels", _most(found.labels)))
    if found.scores:
        facts.append(("scores", f"{found.scores.least:g} to {found.scores.most:g}, mean {found.scores.mean:.3g}"))
    table = Table(title="Findings", title_justify="left", title_style="bold", show_header=False, box=SIMPLE_HEAD)
    for row in facts:
        table.add_row(*map(Text, row))
    warnings = [
        Text.assemble(("! ", "yellow"), f"{one.what}: {one.rows:,} rows, first at {one.example}")
        for one in found.findings
    ]
    return Group(lengths, table, *(warnings or [Text("no problems")]))


def _spread(one: Distribution) -> list[str]:
    return [f"{x:,.0f}" for x in (one.least, one.quarter, one.median, one.three_quarters, one.p95, one.most)]


def _most(labels: Mapping[str, int], shown: int = 8) -> str:
    parts = [f"{label} {count:,}" for label, count in list(labels.items())[:shown]]
    return ", ".join(parts) + (f" and {len(labels) - shown} more" if len(labels) > shown else "")


def leaks(found: Leaks, shown: int = 10) -> RenderableType:
    """How many evaluation sentences stand in the training data, and where."""
    head = (
        f"Leaks: {found.leaked_sentences:,} of {found.sentences:,} evaluation sentences and "
        f"{found.leaked_pairs:,} of {found.pairs:,} pairs stand in {len(found.training_rows):,} training rows"
    )
    table = plain_table(head, "kind", "evaluation", "training", "text")
    for leak in found.kept[:shown]:
        table.add_row(leak.kind, *map(Text, (leak.evaluation, leak.training, leak.text[:80])))
    counts = ", ".join(f"{kind} {count:,}" for kind, count in found.counts.items())
    return Group(table, f"by kind: {counts}") if found.kept else Text(head)


def cleaning(report: CleanReport) -> RenderableType:
    """What each rule changed or dropped."""
    table = plain_table(
        f"Cleaning: {report.rows_before:,} rows, {report.rows_after:,} kept", "rule", "effect", "rows", "why", "first"
    )
    for row in report.table():
        table.add_row(*map(Text, row))
    return table


def views(pairs: Dataset, shown: int = 10) -> RenderableType:
    """The first originals and views side by side, and what was passed over or counted."""
    left, right = pairs.used["anchor"], pairs.used["positive"]
    table = plain_table(f"Views: {len(pairs):,} pairs", left, right)
    first = pairs.take(range(min(shown, len(pairs))))
    for anchor, positive in zip(first["anchor"], first["positive"], strict=True):
        table.add_row(*(Text(_shortened(text)) for text in (anchor, positive)))
    return Group(table, *(Text(f"{count:,} {what}") for what, count in pairs.skipped.items()))


def corpus(found: Corpus) -> RenderableType:
    """What each package of the embedded corpus gave."""
    table = plain_table(
        "Docstrings of the installed packages", "package", "part", "files", "sentences", "pairs", numbers=3
    )
    for one in found.packages:
        table.add_row(one.package, one.split, f"{one.files:,}", f"{one.sentences:,}", f"{one.pairs:,}")
    table.add_section()
    table.add_row(
        "all", "", *(f"{sum(getattr(one, n) for one in found.packages):,}" for n in ("files", "sentences", "pairs"))
    )
    missing = f"not installed, left out: {', '.join(found.missing)}"
    return Group(table, missing) if found.missing else table


def answers(query: str, found: Sequence[tuple[float, str, str]]) -> RenderableType:
    """What a search found: cosine, place or name, text."""
    table = Table(title=Text(f"“{query}”"), title_justify="left", title_style="bold", show_header=False, box=None)
    for column in ("cosine", "place", "text"):
        table.add_column(column, overflow="fold")  # a long path or word is broken, never cut
    for cosine, place, text in found:
        table.add_row(Text(f"{cosine:.2f}", "dim"), Text(place, "cyan"), Text(_shortened(text)))
    return table


def _shortened(text: str) -> str:
    return text if len(text) <= ANSWER_WIDTH else text[: ANSWER_WIDTH - 3] + "..."
