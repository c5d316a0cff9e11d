"""The results of a recipe: its models where the user looks for them, and its scores as JSON and Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sentloom.files import new_file
from sentloom.recipe import Plan, to_yaml
from sentloom.stages.running import Result, copy_model


@dataclass(frozen=True)
class Row:
    """One plan over its seeds: for each set the mean before, the mean after and its deviation (None for one seed)."""

    name: str
    seeds: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    deviation: Mapping[str, float | None]
    published: Mapping[str, float]
    seconds: float  # of training, a seed
    transductive: bool


def summarise(plan: Plan, results: Sequence[Result]) -> Row:
    """The row of a plan in its recipe's table."""
    scores = {name: [result.after[name] for result in results] for name in results[0].after}
    seconds = [sum(stage["outcome"]["seconds"] for stage in result.stages) for result in results]
    return Row(
        name=plan.name,
        seeds=len(results),
        before=results[0].before,
        after={name: mean(values) for name, values in scores.items()},
        deviation={name: stdev(values) if len(values) > 1 else None for name, values in scores.items()},
        published=plan.published,
        seconds=mean(seconds),
        transductive=any(result.transductive for result in results),
    )


def place_models(plan: Plan, results: Sequence[Result], folder: Path, alone: bool) -> list[Path]:
    """Copy the models out: `model` where there is one alone, else `models/NAME/seed-N`."""
    placed = []
    for result in results:
        if result.model is None:
            continue
        single = alone and len(results) == 1
        target = folder / "model" if single else folder / "models" / _file_name(plan.name) / f"seed-{result.seed}"
        copy_model(result.model, target)
        placed.append(target)
    return placed


def write_results(rows: Sequence[Row], results: Sequence[Result], plans: Sequence[Plan], folder: Path) -> None:
    """`results.json` with every number, `results.md` with the table, and the resolved recipes."""
    everything = {"rows": [_plain(row) for row in rows], "runs": [_run(result, folder) for result in results]}
    with new_file(folder / "results.json") as part:
        part.write_text(json.dumps(everything, indent=1), "utf-8")
    with new_file(folder / "results.md") as part:
        part.write_text(markdown(rows), "utf-8")
    for plan in plans:
        name = "recipe.yaml" if len(plans) == 1 else f"recipes/{_file_name(plan.name)}.yaml"
        with new_file(folder / name) as part:
            part.write_text(to_yaml(plan), "utf-8")


def markdown(rows: Sequence[Row]) -> str:
    """The table of a recipe: scores with deviation over seeds, and the distance from the base."""
    sets = list(dict.fromkeys(name for row in rows for name in row.after))
    lines = [f"| | {' | '.join(sets)} | seeds | minutes |", f"|---|{'---:|' * (len(sets) + 2)}"]
    for row in rows:
        cells = [cell(row, name) for name in sets]
        mark = " (transductive)" if row.transductive else ""
        lines.append(f"| {row.name}{mark} | {' | '.join(cells)} | {row.seeds} | {row.seconds / 60:.1f} |")
    return "\n".join(lines) + "\n"


def cell(row: Row, name: str) -> str:
    """A score: "85.84 ± 0.12 (+6.11)", the distance being from the base as it went in."""
    if name not in row.after:
        return ""
    deviation = row.deviation[name]
    spread = "" if deviation is None else f" ± {deviation:.2f}"
    change = row.after[name] - row.before[name]
    return f"{row.after[name]:.2f}{spread}" + (f" ({change:+.2f})" if row.seconds else "")


def _plain(row: Row) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(row).items()}


def _run(result: Result, folder: Path) -> dict[str, Any]:
    model = result.model and str(result.model.relative_to(folder))
    return {**vars(result), "model": model, "stages": list(result.stages)}


def _file_name(name: str) -> str:
    """A variant's name as the name of a file."""
    kept = "".join(letter if letter.isalnum() or letter in "-_+." else "-" for letter in name)
    return kept.strip(".-") or "variant"
