"""The commands about vectors: encode, search, mine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import (
    ColumnOption,
    ColumnsOption,
    Data,
    ModelOption,
    PoolingOption,
    ShapeOption,
    SpreadsheetOption,
    load,
    read,
    show,
    text_column,
)


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

    dataset = read(data, shape, columns)
    encoder = load(model, pooling)
    name = text_column(dataset, column)
    texts = dataset.column(name)
    try:
        before = encode_to_file(encoder, texts, output, source=f"{dataset.sha256} {dataset.used} {name}", role=role)
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    if before:
        show(f"went on behind {before:,} distinct sentences that an earlier run had done")
    show(f"written: {output} ({len(texts):,} vectors of {encoder.dimension})")


def search(
    first: Annotated[
        str,
        typer.Argument(metavar="DATA|MODEL", help="What to look in; or a model folder, which looks in --in."),
    ],
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUERY]...", help="What to look for; without any, it asks, or reads lines from a pipe."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="embedded (so by default), a model folder, or a hub name.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="DATA",
            help="With MODEL: what to look in; by default what it was fitted on, else docstrings of packages.",
        ),
    ] = None,
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
    """Find the sentences that are nearest in meaning to a query. Vectors are kept: the next search is quick."""
    from sentloom.cli import searching
    from sentloom.encoder.vector_files import open_vectors
    from sentloom.report import search_tables
    from sentloom.search.nearest import top_k

    wanted = searching.choose(first, model, within)
    encoder = load(wanted.model, pooling)
    ground = searching.ground(wanted.data, column, shape, columns)
    documents = (
        open_vectors(vectors, (len(ground.texts), encoder.dimension))
        if vectors
        else searching.kept_vectors(encoder, ground.texts)
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
    search: Annotated[
        Literal["exact", "faiss"], typer.Option(help="faiss: for corpora of many hundred thousand texts.")
    ] = "exact",
    pooling: PoolingOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
) -> None:
    """Find hard negatives for pairs: texts that the model holds for near and that are not known to be right."""
    from sentloom.data.sentences import distinct_sentences
    from sentloom.data.writers import write
    from sentloom.report import search_tables
    from sentloom.search.mining import MineSettings
    from sentloom.search.mining import mine as run

    settings = MineSettings(negatives, margin, skip, depth, search)
    pairs = read(data, shape, columns)
    where = distinct_sentences(read(corpus, None, None)).column("text").to_pylist() if corpus else None
    triplets, report = run(load(model, pooling), pairs, where, settings)
    write(triplets, output, spreadsheet_safe)
    show(search_tables.mining(report), f"written: {output}")
