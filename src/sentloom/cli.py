"""The command: one thin function a verb, which parses, calls and prints."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console, RenderableType

from sentloom import __version__
from sentloom.data.shapes import Shape, parse_columns
from sentloom.errors import InputError, MissingPart, SentloomError

if TYPE_CHECKING:
    from sentloom.data import Dataset
    from sentloom.encoder import Encoder

app = typer.Typer(
    help="Turns the text a team has into the sentence encoder it needs, and proves that it got better.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
FOUND_LEAKS = 1  # exit code of `check --against` when there are leaks

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a folder, a saved dataset, a hub name, or embedded, as in embedded/pairs:numpy,pandas.",
    ),
]
ShapeOption = Annotated[Shape | None, typer.Option("--shape", help="What a row is, where the columns do not say it.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", help="role=column,...: anchor=title,positive=body; numbers if no header.")
]
ModelOption = Annotated[str, typer.Option("--model", "-m", help="embedded, a model folder, or a hub name.")]
PoolingOption = Annotated[
    str | None, typer.Option("--pooling", help="mean, first, max, first-last, decoder-first, mean@0,-1 ...")
]
ColumnOption = Annotated[str | None, typer.Option("--column", help="Which text column, where there are several.")]


def show(*parts: RenderableType) -> None:
    """Print to standard output."""
    console = Console()
    for part in parts:
        console.print(part, highlight=False, markup=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sentloom {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _read(name: str, shape: Shape | None, columns: str | None) -> "Dataset":
    """Read data for a command and say what it was taken for."""
    from sentloom.data.opening import open_data
    from sentloom.report import tables

    data = open_data(name, shape=shape, columns=parse_columns(columns) if columns else None)
    show(tables.data_summary(name, data))
    return data


def _load(model: str, pooling: str | None) -> "Encoder":
    from sentloom.encoder import Encoder

    return Encoder.load(model, pooling=pooling)


def _token_counter(model: str) -> tuple[Callable[[list[str]], list[int]] | None, int | None]:
    """How a model counts a text's tokens and how many it reads; without the embedded part, lengths are in words."""
    try:
        tokens = _load(model, None).tokens
    except MissingPart as error:
        show(f"lengths are in words: {error}")
        return None, None
    specials = len(tokens.specials.before) + len(tokens.specials.behind)
    return lambda texts: [len(ids) + specials for ids in tokens.bare(texts)], tokens.max_length


def _text_column(data: "Dataset", asked: str | None) -> str:
    """The one text column, or the one that was asked for."""
    from sentloom.data.shapes import text_columns

    names = [name for name in text_columns(data.shape) if name != "negatives"]
    if asked is None and len(names) == 1:
        return names[0]
    if asked not in names:
        found = f"--column {asked}" if asked else f"{data.shape}, with the text columns {', '.join(names)}"
        raise InputError("column", found, f"one of {', '.join(names)}", f"say --column {names[0]}")
    return asked


@app.command()
def check(
    data: Data,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="Evaluation data to look for; repeatable.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    model: ModelOption = "embedded",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the findings as JSON.")] = None,
) -> None:
    """Say what a data file holds, what is wrong with it, and whether evaluation sentences leak into it.

    Exit code 2: the data has faults. Exit code 1: with --against, evaluation sentences stand in it.
    """
    from sentloom.data.inspection import inspect
    from sentloom.data.leaks import find_leaks
    from sentloom.files import new_file
    from sentloom.report import tables

    dataset = _read(data, shape, columns)
    evaluation = [_read(name, None, None) for name in against or ()]
    found = inspect(dataset, *_token_counter(model))
    show(tables.inspection(found))
    leaks = find_leaks(dataset, evaluation) if evaluation else None
    if leaks:
        show(tables.leaks(leaks))
    if output:
        with new_file(output) as part:
            report = {"file": data, "sha256": dataset.sha256, **asdict(found)}
            if leaks:
                counts = {str(kind): count for kind, count in leaks.counts.items()}
                report["leaks"] = {**counts, "training rows": len(leaks.training_rows)}
            part.write_text(json.dumps(report, indent=2), "utf-8")
    if leaks and leaks.kept:
        raise typer.Exit(FOUND_LEAKS)


@app.command()
def clean(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: csv, tsv, jsonl, txt, parquet.")],
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    min_words: Annotated[int | None, typer.Option(help="Drop rows with a shorter sentence.")] = None,
    max_words: Annotated[int | None, typer.Option(help="Drop rows with a longer sentence.")] = None,
    near_duplicates: Annotated[
        float | None, typer.Option(help="Drop rows this close to an earlier one, such as 0.8.")
    ] = None,
) -> None:
    """Normalise Unicode and white space, drop duplicates and what is too short or long, and say what was dropped."""
    from sentloom.data.clean import CleanSettings
    from sentloom.data.clean import clean as run
    from sentloom.data.writers import write
    from sentloom.report import tables

    settings = CleanSettings(min_words=min_words, max_words=max_words, near_duplicates=near_duplicates)
    cleaned, report = run(_read(data, shape, columns), settings)
    write(cleaned, output)
    show(tables.cleaning(report), f"written: {output}")


@app.command()
def views(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of pairs: csv, tsv, jsonl, parquet.")],
    kind: Annotated[
        str, typer.Option(help="back-translation, synonyms, mask-fill, file or entailment.")
    ] = "back-translation",
    pivot: Annotated[
        list[str] | None,
        typer.Option(help="forward,backward: two translation models, folders or hub names; once or twice."),
    ] = None,
    decoding: Annotated[str | None, typer.Option(help="Of translation models: beam or sampling.")] = None,
    beams: Annotated[int | None, typer.Option(help="How many beams.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among so many words; 0: all.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample among the likeliest words of this share.")] = None,
    model: Annotated[str | None, typer.Option(help="A masked language model: folder or hub name.")] = None,
    share: Annotated[float | None, typer.Option(help="Of words (synonyms) or tokens (mask-fill).")] = None,
    file: Annotated[str | None, typer.Option(help="Ready pairs: originals and their views.")] = None,
    missing: Annotated[str | None, typer.Option(help="Originals not in that file: refuse or skip.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling, synonyms and mask-fill.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where views are kept; by default .sentloom/views beside the output.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Give every sentence a second form, and write the pairs. Stopped or killed, the same command goes on."""
    from sentloom.data.writers import write
    from sentloom.report import tables
    from sentloom.views import make_pairs, view_settings
    from sentloom.views.settings import parse_pivot

    pivots = [parse_pivot(one) for one in pivot] if pivot else None
    given = {"pivots": pivots, "decoding": decoding, "beams": beams, "top_k": top_k, "top_p": top_p, "model": model}
    given |= {"share": share, "file": file, "missing": missing, "seed": seed}
    settings = view_settings({"kind": kind, **{name: value for name, value in given.items() if value is not None}})
    dataset = _read(data, shape, columns)
    try:
        pairs = make_pairs(dataset, settings, cache=cache or output.parent / ".sentloom/views")
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    write(pairs, output)
    show(tables.views(pairs), f"written: {output} ({len(pairs):,} pairs)")


@app.command()
def encode(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .npy, or .parquet with the texts.")
    ],
    model: ModelOption = "embedded",
    pooling: PoolingOption = None,
    role: Annotated[
        Literal["symmetric", "query", "document"], typer.Option(help="Whose prompts to use.")
    ] = "symmetric",
    column: ColumnOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Turn every sentence of a file into a vector. Stopped or killed, the same command goes on where it was."""
    from sentloom.encoder.vector_files import encode_to_file

    dataset = _read(data, shape, columns)
    encoder = _load(model, pooling)
    name = _text_column(dataset, column)
    texts = dataset.column(name)
    try:
        before = encode_to_file(encoder, texts, output, source=f"{dataset.sha256} {dataset.used} {name}", role=role)
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    if before:
        show(f"went on behind {before:,} distinct sentences that an earlier run had done")
    show(f"written: {output} ({len(texts):,} vectors of {encoder.dimension})")


@app.command()
def search(
    data: Data,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look for.")],
    model: ModelOption = "embedded",
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 5,
    pooling: PoolingOption = None,
    column: ColumnOption = None,
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="What `sentloom encode --role document` wrote for the same file and model."),
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Find the sentences of a file that are nearest in meaning to a query."""
    from sentloom.encoder.vector_files import open_vectors
    from sentloom.evaluation import top_k
    from sentloom.report import tables

    dataset = _read(data, shape, columns)
    texts = dataset.column(_text_column(dataset, column))
    encoder = _load(model, pooling)
    documents = (
        open_vectors(vectors, (len(texts), encoder.dimension))
        if vectors
        else encoder.encode(texts, role="document", show_progress=True)
    )
    numbers, cosines = top_k(encoder.encode(queries, role="query"), documents, k)
    for query, rows, values in zip(queries, numbers, cosines, strict=True):
        places = [dataset.place(row).removeprefix(f"{data}, ") for row in rows]
        answers = [texts[int(row)].as_py() for row in rows]
        show("", tables.answers(query, list(zip(values, places, answers, strict=True))))


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="embedded, a model folder, or a hub name.")],
    suite: Annotated[str, typer.Option(help="Which sets: sts.")] = "sts",
    data: Annotated[Path | None, typer.Option(help="A data folder (sts/STS12.tsv ...); without it, the hub.")] = None,
    aggregation: Annotated[str, typer.Option(help="How sub-sets are joined: all, mean or wmean.")] = "all",
    pooling: PoolingOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the scores go as JSON.")] = Path("scores.json"),
) -> None:
    """Score a model on the sets of a suite: a table here, every number in a JSON file."""
    from sentloom.evaluation import Aggregation, evaluate_sts, load_suite
    from sentloom.files import new_file
    from sentloom.report import tables

    if suite != "sts" or aggregation not in list(Aggregation):
        found = f"--suite {suite} --aggregation {aggregation}"
        raise InputError("evaluate", found, "suite sts; aggregation all, mean or wmean", "correct the option")
    sets = load_suite(data)
    encoder = _load(model, pooling)
    result = evaluate_sts(lambda texts: encoder.encode(texts, show_progress=True), sets)
    show(tables.sts(model, result, Aggregation(aggregation)))
    with new_file(output) as part:
        settings = {"model": model, "pooling": str(encoder.pooling), "suite": suite, "sentloom": __version__}
        part.write_text(json.dumps({**settings, **result.to_dict()}, indent=2) + "\n", "utf-8")
    show(f"written: {output}")


@app.command()
def mine(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of triplets: csv, tsv, jsonl, parquet.")],
    model: ModelOption = "embedded",
    corpus: Annotated[
        str | None, typer.Option(help="Where to look: a file of texts; by default the positives of the pairs.")
    ] = None,
    negatives: Annotated[int, typer.Option(min=1, help="How many a pair.")] = 1,
    margin: Annotated[
        float, typer.Option(help="How much less near than its positive a negative must be; nearer ones may be right.")
    ] = 0.05,
    skip: Annotated[int, typer.Option(min=0, help="Nearest candidates to pass over.")] = 0,
    depth: Annotated[int, typer.Option(min=1, help="Candidates to look at.")] = 50,
    pooling: PoolingOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Find hard negatives for pairs: texts that the model holds for near and that are not known to be right."""
    from sentloom.data.writers import write
    from sentloom.mining import MineSettings
    from sentloom.mining import mine as run
    from sentloom.report import tables
    from sentloom.views.sentences import distinct_sentences

    settings = MineSettings(negatives, margin, skip, depth)
    pairs = _read(data, shape, columns)
    where = distinct_sentences(_read(corpus, None, None)).column("text").to_pylist() if corpus else None
    triplets, report = run(_load(model, pooling), pairs, where, settings)
    write(triplets, output)
    show(tables.mining(report), f"written: {output}")


@app.command()
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
        bool, typer.Option("--dry-run", help="Only check recipe and data, and say what would be done and how long.")
    ] = False,
) -> None:
    """Train what a recipe says. Stopped or killed, the same command goes on; what is done is not done again."""
    from sentloom import stages
    from sentloom.files import alone_in
    from sentloom.recipe import find_recipe, read_recipe
    from sentloom.report import tables

    read = read_recipe(find_recipe(recipe), changes or ())
    names: list[str | None] = [*(variant or read.variants)]
    plans = [read.resolve(name) for name in names or [None]]
    trackers = dict.fromkeys(name for plan in plans for name in plan.trackers)
    accelerator = stages.start_accelerator(tuple(trackers), output)
    tell = show if accelerator.is_main_process else lambda *parts: None
    if accelerator.num_processes > 1:
        tell(f"{accelerator.num_processes} processes train together on {accelerator.device.type}")
    known = stages.file_names(list(read.variants))
    files = [known[name] if name else None for name in names or [None]]
    for plan, file in zip(plans, files, strict=True):
        stages.refuse_foreign(plan, output, file)
    if dry_run:
        for plan in plans:
            tell(tables.forecasts(plan.name, stages.forecast(plan, output, accelerator)))
        return
    try:
        with alone_in(output) if accelerator.is_main_process else nullcontext():
            rows = stages.run_plans(plans, files, output, accelerator, tell)
    except KeyboardInterrupt:
        tell("stopped; the same command again goes on from here")
        raise
    finally:
        accelerator.end_training()
    tell(tables.training_results(plans[0].title or read.path.stem, rows), f"written: {output / 'results.json'}")


@app.command()
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

    texts = (text for _, _, text in _read(data, shape, columns).sentences())
    build_model(
        output, family, texts, vocabulary=vocabulary, layers=layers, width=width, max_length=max_length, seed=seed
    )
    show(f"written: {output}")


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="Of one recipe, all variants.")] = None,
) -> None:
    """List the recipes that come with sentloom: what they train, on what, and the scores that papers print."""
    from sentloom.recipe import find_recipe, read_recipe, shipped
    from sentloom.report import tables

    found = {name: find_recipe(name)} if name else shipped()
    for one, path in found.items():
        show(tables.recipe(one, read_recipe(path), whole=name is not None))


@app.command()
def demo(
    model: ModelOption = "embedded",
    packages: Annotated[
        str | None, typer.Option(help="package,...: whose docstrings; by default all we know of.")
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(help="package,...: which of them to score on; by default scipy.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, help="How many names to look up for the score.")] = 2000,
) -> None:
    """Run the main job on the embedded defaults: harvest, encode, score, search. No hub, no data needed."""
    from sentloom.data.docstrings import harvest
    from sentloom.demo import run

    chosen, apart = (names.split(",") if names else None for names in (packages, held_out))
    show("Reading the docstrings of the installed packages ...")
    run(model, harvest(chosen, apart, show_progress=True), queries, show)


def main() -> None:
    """Run the command. Errors of the user end in a message and exit code 2, never in a traceback."""
    try:
        app()
    except SentloomError as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        text = (
            f"error: {place}{error.strerror or error}\nNext: check the path, its permissions and the space on the disk"
        )
        Console(stderr=True).print(text, style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(SentloomError.exit_code)
