"""The commands about training: train, init-model, vocabulary, recipes."""

from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import (
    ColumnsOption,
    Data,
    DeviceOption,
    PrecisionOption,
    ShapeOption,
    is_main_process,
    load,
    read,
    resumable,
    show,
)
from sentloom.errors import InputError

LEARNED_ROWS = 1_000_000  # per column: enough to learn a vocabulary from, and it fits in memory
COMPARED_ROWS = 2_000


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
    from sentloom.api.training import train as run
    from sentloom.report import recipe_tables

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
    from sentloom import pipeline
    from sentloom.api.training import open_recipe
    from sentloom.encoder.device import running_on
    from sentloom.report import recipe_tables

    opened = open_recipe(recipe, output, variant, changes)
    missing: list[str] = []
    with running_on(device, precision):
        accelerator = pipeline.start_accelerator(opened.trackers, output)
        for plan in opened.plans:
            absent = pipeline.needs(plan)
            if absent:
                show(recipe_tables.outline(plan, absent))
            else:
                show(recipe_tables.forecasts(plan.name, pipeline.forecast(plan, accelerator)))
            missing += [one.name for one in absent if not one.on_hub]
    if missing:
        names = list(dict.fromkeys(missing))
        found = f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''} cannot be found"
        fix = "put them there; the comment at the head of a built-in recipe says where its data comes from"
        raise InputError(recipe, found, "these files or folders", fix)


def init_model(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    family: Annotated[str, typer.Option(help="The architecture: bert, t5 or mt5.")] = "bert",
    vocabulary: Annotated[int, typer.Option(min=50, help="How many tokens the tokenizer learns from the data.")] = 8000,
    layers: Annotated[int, typer.Option(min=1, help="The number of layers; T5 has as many again in its decoder.")] = 4,
    width: Annotated[int, typer.Option(min=32, help="The size of the hidden states, a multiple of 32.")] = 256,
    max_length: Annotated[int, typer.Option(min=8, help="The maximum number of tokens per sentence.")] = 128,
    seed: Annotated[int, typer.Option(help="The seed of the random weights.")] = 0,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Create a small model with random weights and a tokenizer learned from your text. Needs no download."""
    from sentloom.encoder.building import build_model

    texts = (text for _, _, text in read(data, shape, columns).sentences())
    build_model(
        output, family, texts, vocabulary=vocabulary, layers=layers, width=width, max_length=max_length, seed=seed
    )
    show(f"written: {output}")


def vocabulary(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="embedded, a model folder, or a hub name.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    size: Annotated[int, typer.Option(min=50, help="How many tokens to learn from the text.")] = 8000,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A text column to learn from; repeatable. For translations, by default the target."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the old tokens: for a model that will only read this kind of text."),
    ] = False,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Extend a model's vocabulary with words of your text; their embeddings start from those of their old tokens."""
    from sentloom.data.columns import sampled_texts, text_column
    from sentloom.data.shapes import Shape, text_columns
    from sentloom.encoder.vocabulary import new_vocabulary, same_tokens
    from sentloom.hygiene.token_stats import count_tokens

    encoder, dataset = load(model, None), read(data, shape, columns)
    asked: list[str | None] = [*column] if column else [None]
    is_target = not column and dataset.shape is Shape.PARALLEL
    names = ["target"] if is_target else [text_column(dataset, name) for name in asked]
    texts = [text for name in names for text in sampled_texts(dataset, name, LEARNED_ROWS)]
    student = new_vocabulary(encoder, texts, size, keep_old=not replace)
    student.save(output)
    before, after = (
        count_tokens(dataset, one.tokens.bare, one.tokens.tokenizer.unk_token_id) for one in (encoder, student)
    )
    for name, old, new in zip(text_columns(dataset.shape), before, after, strict=True):
        same = same_tokens(encoder, student, sampled_texts(dataset, name, COMPARED_ROWS))
        show(f"{old.column}: {old.share} before, {new.share} after; {same:.1%} of the sentences keep their tokens")
    known, has = len(encoder.tokens.tokenizer), len(student.tokens.tokenizer)
    show(f"{known:,} tokens before, {has:,} after", f"written: {output}")


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="A recipe, to see all its variants, or a paper: its tables.")
    ] = None,
) -> None:
    """List the recipes that come with sentloom: what they train, on what data, and the published scores."""
    from sentloom.pipeline.builtin import MEASURED_BY, SPEED, find_recipe, shipped
    from sentloom.pipeline.recipe import read_recipe
    from sentloom.report import recipe_tables

    listed = {one: path for one, path in shipped().items() if name is None or one.startswith(f"{name}/")}
    found = listed or {str(name): find_recipe(str(name))}
    for one, path in found.items():
        show(recipe_tables.recipe(one, read_recipe(path), whole=not listed))
    for one in SPEED:
        if listed and (name is None or one.startswith(f"{name}/")):
            show(f"{one}: speed on your machine, by {MEASURED_BY} (docs/papers/README.md)")
