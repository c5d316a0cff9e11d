"""The commands about training: train, new, vocabulary, recipes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import ColumnsOption, Data, ShapeOption, load, read, show, text_column, working_in
from sentloom.errors import InputError

if TYPE_CHECKING:
    from accelerate import Accelerator

    from sentloom.pipeline.plan import Plan

LEARNED_ROWS = 1_000_000  # of each column: enough to learn pieces on, and it fits in memory
COMPARED_ROWS = 2_000


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A YAML file, or the name of a shipped recipe (sentloom recipes).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for models and results.")],
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only this variant; repeatable. Without it, all of them.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Over the recipe: seeds=[1], STAGE.batch=32; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Fetch and train nothing: print what would be done and how long, or what is missing."
        ),
    ] = False,
) -> None:
    """Train what a recipe says. Stopped or killed, the same command goes on; what is done is not done again."""
    from sentloom import pipeline
    from sentloom.pipeline.builtin import find_recipe
    from sentloom.pipeline.recipe import read_recipe
    from sentloom.report import recipe_tables

    read = read_recipe(find_recipe(recipe), changes or ())
    names: list[str | None] = [*(variant or read.variants)]
    plans = [read.resolve(name) for name in names or [None]]
    trackers = dict.fromkeys(name for plan in plans for name in plan.trackers)
    accelerator = pipeline.start_accelerator(tuple(trackers), output)
    log = show if accelerator.is_main_process else lambda *parts: None
    if accelerator.num_processes > 1:
        log(f"{accelerator.num_processes} processes train together on {accelerator.device.type}")
    known = pipeline.file_names(list(read.variants))
    files = [known[name] if name else None for name in names or [None]]
    for plan, file in zip(plans, files, strict=True):
        pipeline.refuse_foreign(plan, output, file)
    if dry_run:
        _look_ahead(recipe, plans, output, accelerator, log)
        return
    with working_in(output, accelerator, log):
        rows = pipeline.run_plans(plans, files, output, accelerator, log)
    log(recipe_tables.training_results(plans[0].title or read.path.stem, rows), f"written: {output / 'results.json'}")


def _look_ahead(
    recipe: str, plans: "list[Plan]", output: Path, accelerator: "Accelerator", log: Callable[..., None]
) -> None:
    """Print what each plan would do, with times if all it needs is here; else what is missing."""
    from sentloom import pipeline
    from sentloom.report import recipe_tables

    missing: list[str] = []
    for plan in plans:
        absent = pipeline.needs(plan)
        if absent:
            log(recipe_tables.outline(plan, absent))
        else:
            log(recipe_tables.forecasts(plan.name, pipeline.forecast(plan, accelerator)))
        missing += [one.name for one in absent if not one.on_hub]
    if missing:
        names = list(dict.fromkeys(missing))
        found = f"no {', no '.join(names[:5])}{' and more' if len(names) > 5 else ''}"
        fix = "put them there; the comment at the head of a shipped recipe says where its data comes from"
        raise InputError(recipe, found, "these files or folders", fix)


def new(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    family: Annotated[str, typer.Option(help="bert, t5 or mt5.")] = "bert",
    vocabulary: Annotated[int, typer.Option(min=50, help="Pieces of the tokenizer, trained on the data.")] = 8000,
    layers: Annotated[int, typer.Option(min=1, help="Of T5, as many again in the decoder.")] = 4,
    width: Annotated[int, typer.Option(min=32, help="Of a token's state: a multiple of 32.")] = 256,
    max_length: Annotated[int, typer.Option(min=8, help="Tokens of a sentence.")] = 128,
    seed: Annotated[int, typer.Option(help="Of the random weights.")] = 0,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Make a small model of random weights, with a tokenizer trained on your text: a start without any hub."""
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
    size: Annotated[int, typer.Option(min=50, help="Pieces to learn on the text.")] = 8000,
    column: Annotated[
        list[str] | None, typer.Option(help="Which text columns to learn on; repeatable. Of translations: target.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Instead of the old pieces: for a model that reads this text alone.")
    ] = False,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Teach a model's tokenizer the words of your text; their embeddings start from those it has."""
    from sentloom.data.columns import sampled_texts
    from sentloom.data.shapes import Shape
    from sentloom.encoder.vocabulary import new_vocabulary, same_tokens
    from sentloom.hygiene.token_stats import count_tokens

    encoder, dataset = load(model, None), read(data, shape, columns)
    asked: list[str | None] = [*column] if column else ["target" if dataset.shape is Shape.PARALLEL else None]
    names = [text_column(dataset, name) for name in asked]
    texts = [text for name in names for text in sampled_texts(dataset, name, LEARNED_ROWS)]
    student = new_vocabulary(encoder, texts, size, keep_old=not replace)
    student.save(output)
    before, after = (
        count_tokens(dataset, one.tokens.bare, one.tokens.tokenizer.unk_token_id) for one in (encoder, student)
    )
    for old, new in zip(before, after, strict=True):
        same = same_tokens(encoder, student, sampled_texts(dataset, old.column, COMPARED_ROWS))
        show(f"{old.column}: {old.share} before, {new.share} after; {same:.1%} of the sentences keep their tokens")
    known, has = len(encoder.tokens.tokenizer), len(student.tokens.tokenizer)
    show(f"{known:,} pieces before, {has:,} after", f"written: {output}")


def recipes(
    name: Annotated[str | None, typer.Argument(help="Of one recipe, all variants.")] = None,
) -> None:
    """List the recipes that come with sentloom: what they train, on what, and the scores that papers print."""
    from sentloom.pipeline.builtin import find_recipe, shipped
    from sentloom.pipeline.recipe import read_recipe
    from sentloom.report import recipe_tables

    found = {name: find_recipe(name)} if name else shipped()
    for one, path in found.items():
        show(recipe_tables.recipe(one, read_recipe(path), whole=name is not None))
