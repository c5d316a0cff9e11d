"""The results of a recipe: its models where the user looks for them, and its scores as JSON and Markdown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from accelerate import Accelerator

from sentloom.encoder.locate import refuse_no_model
from sentloom.engine.plan import Plan, to_yaml
from sentloom.engine.runner import PlanResult, Runner, copy_encoder, copy_model, prepare
from sentloom.errors import InputError
from sentloom.evaluation.task import UNLIKE, signed_note
from sentloom.files import new_file, read_record, write_record
from sentloom.markdown import plain, table
from sentloom.terminal import printable


@dataclass(frozen=True)
class Row:
    """One plan over its seeds: for each set the score of the base, the mean after and its deviation (None for one)."""

    name: str
    seeds: int
    base: str  # the base as it is: its name and pooling
    before: Mapping[str, float]
    start: str  # what the first stage got: the same, or with another pooling
    at_start: Mapping[str, float]
    after: Mapping[str, float]
    deviation: Mapping[str, float | None]
    published: Mapping[str, float]
    seconds: float  # of the stages that run under every seed, per seed
    trained: bool  # otherwise the base itself
    transductive: bool
    made: Sequence[Mapping[str, Any]] = ()  # by stages that run once: stage, method, result, seconds, place
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what must be known about a set or a mean
    not_comparable: Sequence[str] = ()  # sets and means whose scores are not those that papers print
    published_deviation: Mapping[str, float] = field(default_factory=dict)


def summarise(plan: Plan, results: Sequence[PlanResult]) -> Row:
    """The row of a plan in its recipe's table."""
    scores = {name: [result.after[name] for result in results] for name in results[0].after}
    seconds = [sum(stage["seconds"] for stage in result.stages if not stage["once"]) for result in results]
    return Row(
        name=plan.name,
        seeds=len(results),
        base=results[0].base,
        before=results[0].before,
        start=results[0].start,
        at_start=results[0].at_start,
        after={name: mean(values) for name, values in scores.items()},
        deviation={name: stdev(values) if len(values) > 1 else None for name, values in scores.items()},
        published=plan.published,
        seconds=mean(seconds),
        trained=results[0].model is not None,
        transductive=any(result.transductive for result in results),
        made=[
            {name: stage[name] for name in ("stage", "method", "result", "seconds", "place")}
            for stage in results[0].stages
            if stage["once"]
        ],
        notes=results[0].notes,
        not_comparable=results[0].not_comparable,
        published_deviation=plan.published_deviation,
    )


def run_plans(
    plans: Sequence[Plan],
    files: Sequence[str | None],  # for each plan the name of its files; None: it is the only one
    folder: Path,
    accelerator: Accelerator,
    log: Callable[[str], None],
) -> list[Row]:
    """Run plans one after another and write the results of each at once; returns all rows of the folder."""
    rows: list[Row] = []
    for runner, file in zip(prepare(plans, folder, accelerator, log), files, strict=True):
        results = runner.run()
        if accelerator.is_main_process:
            placed = [*place_models(runner.plan, results, folder, file), *place_others(runner, folder, file)]
            rows = write_results(summarise(runner.plan, results), results, runner.plan, folder, file)
            for place in placed:
                log(f"written: {place}")
    return rows


def model_places(plan: Plan, folder: Path, name: str | None) -> dict[int, Path]:
    """Where each seed's model goes: `model` where there is one alone, else `models/NAME/seed-N`."""
    if name is None and len(plan.seeds) == 1:
        return {plan.seeds[0]: folder / "model"}
    return {seed: folder / "models" / (name or "") / f"seed-{seed}" for seed in plan.seeds}


def writer_place(plan: Plan, folder: Path, name: str | None) -> tuple[str, Path] | None:
    """The stage whose writer a plan without encoders ends with, and where that writer goes."""
    writers = [stage.name for stage in plan.stages if stage.PRODUCES == "writer"]
    if _makes_encoder(plan) or not writers:
        return None
    return writers[-1], folder / "models" / name / writers[-1] if name else folder / "model"


def place_others(runner: Runner, folder: Path, name: str | None) -> list[Path]:
    """Copy the writer, if a plan ends with one; return its place and the folder of a dataset that a plan ends with."""
    placed = []
    if writer := writer_place(runner.plan, folder, name):
        copy_model(Path(runner.artifacts[writer[0]].source), writer[1])
        placed.append(writer[1])
    last = runner.plan.stages[-1:]
    return [*placed, *(Path(runner.artifacts[stage.name].source) for stage in last if stage.PRODUCES == "dataset")]


def _makes_encoder(plan: Plan) -> bool:
    return any(stage.PRODUCES == "encoder" for stage in plan.stages)


def refuse_foreign(plan: Plan, folder: Path, name: str | None) -> None:
    """Refuse, before anything is trained, to replace models or files that sentloom did not write."""
    writer = writer_place(plan, folder, name)
    models = list(model_places(plan, folder, name).values()) if _makes_encoder(plan) else []
    for place in [*models, *([writer[1]] if writer else [])]:
        refuse_no_model(place)
    refuse_foreign_file(folder / "results.md", folder / "results.json")
    _read_results(folder / "results.json")  # a damaged one is refused now, not after the training


def refuse_foreign_file(path: Path, ours: Path) -> None:
    """Refuse to replace a file unless `ours`, which is always written with it, exists too."""
    if path.exists() and not ours.exists():
        problem = "this file was not written by sentloom"
        raise InputError(str(path), problem, "a folder of its own", "choose another folder")


def place_models(plan: Plan, results: Sequence[PlanResult], folder: Path, name: str | None) -> list[Path]:
    """Copy the models to where the user looks for them."""
    places = model_places(plan, folder, name)
    trained = [(result.model, places[result.seed]) for result in results if result.model is not None]
    for model, place in trained:
        copy_encoder(model, place)
    return [place for _, place in trained]


def write_results(row: Row, results: Sequence[PlanResult], plan: Plan, folder: Path, name: str | None) -> list[Row]:
    """Add a plan's row to `results.json` (every number) and `results.md` (the table); write its resolved recipe.

    Returns all rows: those of other plans that an earlier command left in the folder stay.
    """
    path = folder / "results.json"
    before = _read_results(path)
    rows = {values["name"]: Row(**values) for values in before["rows"]} | {row.name: row}
    runs = [run for run in before["runs"] if run["plan"] != plan.name]
    runs += [run_values(result, folder) for result in results]
    write_record(path, {"rows": [_plain(kept) for kept in rows.values()], "runs": runs})
    with new_file(folder / "results.md") as part:
        part.write_text(printable(markdown(list(rows.values()))), "utf-8")
    with new_file(folder / (f"recipes/{name}.yaml" if name else "recipe.yaml")) as part:
        part.write_text(to_yaml(plan), "utf-8")
    return list(rows.values())


def _read_results(path: Path) -> dict[str, Any]:
    """The rows and runs that earlier commands left in the folder."""
    if not path.is_file():
        return {"rows": [], "runs": []}
    return read_record(path, "move it away and run again: finished stages are not trained again")


def markdown(rows: Sequence[Row]) -> str:
    """What was made, and the table of a recipe: scores with deviation over seeds, and the distance from the base."""
    parts = [_made_table(things)] if (things := made_things(rows)) else []
    scored = [row for row in rows if row.base]
    noted = ["\n".join(f"- {plain(note)}" for note in notes) + "\n"] if (notes := set_notes(scored)) else []
    return "\n".join([*parts, *([_score_table(scored)] if scored else []), *noted])


def made_things(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """What the stages that run once produced, over all rows, each once."""
    return list({made["place"]: made for row in rows for made in row.made}.values())


def _made_table(things: Sequence[Mapping[str, Any]]) -> str:
    facts = ("stage", "method", "result", "place")
    rows = [(*(made[name] for name in facts), f"{made['seconds'] / 60:.1f}") for made in things]
    return table(("stage", "method", "result", "folder", "minutes"), rows, 4) + "\n"


def _score_table(rows: Sequence[Row]) -> str:
    sets = list(dict.fromkeys(name for row in rows for name in row.after))
    with_published = any(row.published for row in rows)
    lines = []
    for label, scores in untouched(rows).items():
        cells = [
            score_text(scores[name], unlike=name in unlike_at(rows, label)) if name in scores else "" for name in sets
        ]
        lines.append([f"{label}, untouched", *cells, *([""] if with_published else []), "", ""])
    for row in rows:
        cells = [cell(row, name) for name in sets] + ([published(row)] if with_published else [])
        mark = " (transductive)" if row.transductive else ""
        lines.append([f"{row.name}{mark}", *cells, str(row.seeds), f"{row.seconds / 60:.1f}"])
    head = ["", *sets, *(["published"] if with_published else []), "seeds", "minutes"]
    return table(head, lines) + "\n"


def untouched(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """The bases of the trained rows as they are, and as training got them: by name and pooling, their scores."""
    bases: dict[str, Mapping[str, float]] = {}
    for row in rows:
        if row.trained and row.before:
            for label, scores in ((row.base, row.before), (row.start, row.at_start)):
                bases[label] = {**bases.get(label, {}), **scores}  # other rows may be scored on other sets
    return bases


def unlike_at(rows: Sequence[Row], base: str) -> set[str]:
    """The sets on which the scores of a base are not those that papers print."""
    return {name for row in rows if base in (row.base, row.start) for name in row.not_comparable}


def set_notes(rows: Iterable[Row]) -> list[str]:
    """What must be known about the sets and means of these rows, each note once."""
    every = (f"{name}: {note}" for row in rows for name, notes in row.notes.items() for note in notes)
    return [*map(signed_note, dict.fromkeys(every))]


def published(row: Row) -> str:
    """The scores that a paper prints for a row."""
    return ", ".join(f"{name} {score:.2f}" for name, score in row.published.items())


def cell(row: Row, name: str) -> str:
    """A row's score on a set, the distance being from the base as it is."""
    if name not in row.after:
        return ""
    return score_text(row.after[name], row.deviation[name], change(row, name), unlike=name in row.not_comparable)


def change(row: Row, name: str) -> float | None:
    """How far a trained row is from its base as it is."""
    return row.after[name] - row.before[name] if row.trained else None


def score_text(
    score: float, deviation: float | None = None, change: float | None = None, *, unlike: bool = False
) -> str:
    """As in "85.84 ± 0.12 (+6.11)", or "85.84†" if it is not comparable with published scores."""
    spread = "" if deviation is None else f" ± {deviation:.2f}"
    return f"{score:.2f}{UNLIKE * unlike}{spread}" + ("" if change is None else f" ({change:+.2f})")


def _plain(row: Row) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(row).items()}


def run_values(result: PlanResult, folder: Path) -> dict[str, Any]:
    """The result of one plan under one seed, for JSON; the model's path is relative to the folder."""
    model = result.model and str(result.model.relative_to(folder))
    stages = [{name: value for name, value in stage.items() if name != "result"} for stage in result.stages]
    return {**vars(result), "model": model, "stages": stages}
