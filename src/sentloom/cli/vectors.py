"""The commands about vectors: encode, search, mine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import (
    BackendOption,
    ColumnOption,
    ColumnsOption,
    Data,
    DeviceOption,
    ModelOption,
    PoolingOption,
    PrecisionOption,
    ShapeOption,
    SpreadsheetOption,
    load,
    read,
    resumable,
    show,
)
from sentloom.errors import InputError


def encode(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .npy, or .parquet with the texts.")
    ],
    model: ModelOption = "embedded",
    pooling: PoolingOption = None,
    role: Annotated[
        Literal["symmetric", "query", "document"], typer.Option(help="Which of the model's prompts to use.")
    ] = "symmetric",
    column: ColumnOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = "torch",
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="local, or ray: the workers of a Ray cluster, or of this machine.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many workers Ray starts. By default one per core.")
    ] = None,
) -> None:
    """Encode every sentence of a file as a vector. Run the same command again to resume."""
    from functools import partial

    from sentloom.data.columns import text_column
    from sentloom.encoder.ray_encoding import encode_with_ray
    from sentloom.encoder.vector_files import encode_to_file
    from sentloom.files import at_its_name

    if workers and engine != "ray":
        raise InputError("--workers", "the engine local has no workers", "", "leave it out, or add --engine ray")
    dataset = read(data, shape, columns, column=column)
    place = (
        str(Path(model).resolve()) if at_its_name(Path(model)).is_dir() else model
    )  # workers may run in another folder
    opened = partial(load, place, pooling, device, precision, backend)
    encoder, name = opened(), text_column(dataset, column)
    texts, source = dataset.column(name), f"{dataset.sha256} {dataset.used} {name}"
    with resumable():
        if engine == "ray":
            before = encode_with_ray(encoder, opened, texts, output, source=source, role=role, workers=workers)
        else:
            before = encode_to_file(encoder, texts, output, source=source, role=role)
    if before:
        show(f"resumed after {before:,} distinct sentences of an earlier run")
    show(f"written: {output} ({len(texts):,} vectors of {encoder.dimension})")


def search(
    first: Annotated[
        str,
        typer.Argument(metavar="DATA|MODEL", help="The data to search; or a model folder, which searches --in."),
    ],
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY",
            help="What to search for. Without any, queries are typed, or read as lines from a pipe.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="The encoder: embedded, a model folder, or a hub name. By default embedded."
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="DATA",
            help="The data that MODEL searches. By default what it was fitted on, or else docstrings of packages.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many results to show.")] = 5,
    pooling: PoolingOption = None,
    column: ColumnOption = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="The file that `sentloom encode --role document` wrote for the same data and model."
        ),
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = "torch",
) -> None:
    """Search by meaning: show the sentences nearest to a query. Vectors are cached, so the next search is fast."""
    from sentloom.cli import searching
    from sentloom.encoder.vector_files import open_vectors
    from sentloom.report import search_tables
    from sentloom.search.nearest import top_k

    wanted = searching.choose(first, model, within)
    encoder = load(wanted.model, pooling, device, precision, backend)
    ground = searching.ground(wanted.data, column, shape, columns)
    documents = (
        open_vectors(vectors, (len(ground.texts), encoder.dimension))
        if vectors
        else searching.cached_vectors(encoder, ground.texts)
    )
    for query in queries or searching.asked():
        numbers, cosines = top_k(encoder.encode([query], role="query"), documents, k)
        found = [
            (float(value), ground.place(int(row)), str(ground.texts[int(row)]))
            for row, value in zip(numbers[0], cosines[0], strict=True)
        ]
        show("", search_tables.answers(query, found))


def mine(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file of triplets: .csv, .tsv, .jsonl or .parquet.")
    ],
    model: ModelOption = "embedded",
    corpus: Annotated[
        str | None, typer.Option(help="A file of texts to search for negatives. By default the positives of the pairs.")
    ] = None,
    negatives: Annotated[int, typer.Option(min=1, help="How many negatives per pair.")] = 1,
    margin: Annotated[
        float,
        typer.Option(
            help="How far below the positive's cosine a negative's must be; closer ones may be right answers."
        ),
    ] = 0.05,
    at_most: Annotated[
        float | None,
        typer.Option(help="A negative's cosine is also at most this share of the positive's, such as 0.95."),
    ] = None,
    guide: Annotated[
        str | None,
        typer.Option(help="A second model; what it finds too close to the anchor is not used as a negative either."),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="A cross-encoder: embedded, a model folder, or a hub name. What it scores nearly as high as the "
            "positive is not used as a negative either."
        ),
    ] = None,
    teacher_margin: Annotated[
        float, typer.Option(help="How far below the positive's score a negative's must be, by the teacher.")
    ] = 1.0,
    skip: Annotated[int, typer.Option(min=0, help="How many of the nearest candidates to skip.")] = 0,
    depth: Annotated[int, typer.Option(min=1, help="How many candidates to look at.")] = 50,
    search: Annotated[
        Literal["exact", "faiss"],
        typer.Option(help="exact, or faiss for corpora of several hundred thousand texts or more."),
    ] = "exact",
    pooling: PoolingOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Find hard negatives for pairs: texts that rank close to the anchor but are not known to be right.

    Pairs for which none is found are not in the output.
    """
    from sentloom.api.mining import mine as run
    from sentloom.report import search_tables

    _, report = run(
        read(data, shape, columns),
        output,
        model=model,
        corpus=read(corpus, None, None) if corpus else None,
        negatives=negatives,
        margin=margin,
        at_most=at_most,
        guide=guide,
        teacher=teacher,
        teacher_margin=teacher_margin,
        skip=skip,
        depth=depth,
        search=search,
        pooling=pooling,
        spreadsheet_safe=spreadsheet_safe,
        device=device,
        precision=precision,
        show_progress=True,
    )
    show(search_tables.mining(report), f"written: {output}")
