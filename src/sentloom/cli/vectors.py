"""The commands about vectors: encode, search."""

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
