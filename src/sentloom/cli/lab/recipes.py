"""The lab's commands about recipes: train, compare, reproduce, recipes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import DeviceOption, PrecisionOption, is_main_process, resumable, show
from sentloom.errors import InputError


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A YAML file, or the name of a recipe that comes with sentloom.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for models and results.")],
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only this variant; repeatable. By default all variants.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a value of the recipe: seeds=[1], STAGE.batch=32; repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Download and train nothing: print what would be done and for how long, or what is missing.",
        ),
    ] = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Run a recipe. Run the same command again to resume; finished stages are reused."""
    from sentloom.lab import recipe_tables
    from sentloom.lab.training import train as run

    if dry_run:
        _look_ahead(recipe, variant or [], changes or [], output, device, precision)
        return
    with resumable():
        trained = run(
            recipe,
            output,
            variant=variant or (),
            set=changes or (),
            device=device,
            precision=precision,
            log=show,
        )
    if is_main_process():
        show(recipe_tables.training_results(trained.title, trained.rows), f"written: {output / 'results.json'}")


def _look_ahead(
    recipe: str, variant: list[str], changes: list[str], output: Path, device: str | None, precision: str | None
) -> None:
    """Print what each plan would do, with times if everything it needs is there; else what is missing."""
    from sentloom.encoder.device import running_on
    from sentloom.engine.needs import needs
    from sentloom.engine.runner import start_accelerator
    from sentloom.lab import recipe_tables
    from sentloom.lab.forecast import forecast
    from sentloom.lab.training import open_recipe

    opened = open_recipe(recipe, output, variant, changes)
    missing: list[str] = []
    with running_on(device, precision):
        accelerator = start_accelerator(opened.trackers, output)
        for plan in opened.plans:
            absent = needs(plan)
            if absent:
                show(recipe_tables.outline(plan, absent))
            else:
                show(recipe_tables.forecasts(plan.name, forecast(plan, accelerator)))
            missing += [need.name for need in absent if not need.on_hub]
    if missing:
        names = list(dict.fromkeys(missing))
        problem = f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''} cannot be found"
        fix = "put them there; the comment at the head of a built-in recipe says where its data comes from"
        raise InputError(recipe, problem, "these files or folders", fix)


def compare(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE",
            help="YAML files, or names of recipes that come with sentloom.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The folder for models and tables."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to train every method with.")] = 3,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only this variant; repeatable. By default all variants.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipes, as for train; repeatable."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="SET", help="Score all methods on this set or file, instead of their own; repeatable."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of the evaluation sets, instead of the recipes' own.")
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Train recipes and their variants with the same seeds, and compare scores and cost in one table.

    Run the same command again to resume; finished runs are reused.
    """
    from sentloom.lab import comparison_tables
    from sentloom.lab.comparing import compare as run
    from sentloom.lab.comparison import comparison_table

    with resumable():
        comparison = run(
            recipes,
            output,
            seeds=seeds,
            variant=variant or (),
            set=changes or (),
            on=[Path(name) for name in on or ()],
            data=data,
            device=device,
            precision=precision,
            log=show,
        )
    if not is_main_process():
        return
    show("", comparison_tables.methods_table("Comparison", comparison_table(comparison)))
    for name in comparison_tables.FILES:
        show(f"written: {(output or Path()) / name}")
    for error in comparison.failed.values():
        raise error


def reproduce(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="PAPER/TABLE", help="Tables as `sentloom lab recipes` lists them, or a paper: all its tables."
        ),
    ],
    scale: Annotated[
        Literal["paper", "tiny"],
        typer.Option(help="With tiny, the same rows run on small models, few sentences and few steps: a test."),
    ] = "paper",
    row: Annotated[
        list[str] | None, typer.Option("--row", help="Only this row, of the tables that have it; repeatable.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a value of the recipes, as for train; the table says so."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Download and train nothing: print each row's command, checkpoints, GPU memory, disk and hours.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="SENTLOOM_DATA", help="The folder of sets and training files (docs/sets.md). By default the hub."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The folder for models and tables. By default reproduced/SCALE."
        ),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Run tables of the papers, and print measured beside published scores. Run it again to resume.

    Rows whose models or data are not here are named with what they lack, where it comes from and what to do. If no row
    ran, or at the scale tiny not every one, the exit code is 1.
    """
    from sentloom.lab.reproducing import reproduce as run
    from sentloom.lab.reproduction import FILES, reproduction_table

    if dry_run:
        _show_costs(tables, row or [], changes or [], data)
        return
    folder = output or Path("reproduced") / scale
    with resumable():
        reproductions = run(
            tables,
            folder,
            scale=scale,
            row=row or (),
            set=changes or (),
            data=data,
            device=device,
            precision=precision,
            log=show,
        )
    if is_main_process():
        for table, reproduction in reproductions.items():
            show("", reproduction_table(reproduction))
            show(*(f"written: {folder / table / file}" for file in FILES))
    not_run = any(reproduction.not_run for reproduction in reproductions.values())
    if not_run and (scale == "tiny" or not any(reproduction.rows for reproduction in reproductions.values())):
        raise typer.Exit(1)


def _show_costs(tables: list[str], row: list[str], changes: list[str], data: Path | None) -> None:
    """Print what each row would cost, and what it lacks that the hub does not have."""
    from sentloom.lab.reproducing import look_ahead
    from sentloom.lab.row_costs import describe, total

    costs = []
    for cost, lacks in look_ahead(tables, row=row, set=changes, data=data):
        costs.append(cost)
        missing = [f"  not here: {part.what}; {part.fix}" for part in lacks if not part.fetched]
        show("\n".join([*describe(cost), *missing]))
    show("", total(costs))


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="A recipe, to see all its variants, or a paper: its tables.")
    ] = None,
) -> None:
    """List the recipes that come with sentloom: what they train, on what data, and the published scores."""
    from sentloom.lab import recipe_tables
    from sentloom.lab.recipe import MEASURED_BY, SPEED, find_recipe, read_recipe, shipped

    listed = {label: path for label, path in shipped().items() if name is None or label.startswith(f"{name}/")}
    paths = listed or {str(name): find_recipe(str(name))}
    for label, path in paths.items():
        show(recipe_tables.recipe(label, read_recipe(path), whole=not listed))
    for label in SPEED:
        if listed and (name is None or label.startswith(f"{name}/")):
            show(f"{label}: speed on your machine, by {MEASURED_BY} (docs/papers/README.md)")
