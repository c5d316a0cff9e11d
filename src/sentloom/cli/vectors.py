"""The commands `encode` and `search`: what is searched, with which model, and where its queries come from."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sentloom.cli.common import (
    BackendOption,
    ColumnOption,
    ColumnsOption,
    Data,
    DeviceOption,
    EncodingOption,
    ModelOption,
    PoolingOption,
    PrecisionOption,
    ShapeOption,
    SheetOption,
    load,
    read,
    resumable,
    show,
)
from sentloom.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from sentloom.data import Dataset
    from sentloom.data.shapes import Shape
    from sentloom.encoder import Encoder
    from sentloom.search.vectors import Vectors

PROMPT = "search> "
SHOWN_COLUMNS, SHOWN_CHARACTERS = 3, 60  # beside a result
UNSHOWN = ("document", "links", "anchors")  # of documents, whose place says which it is
CORPUS, ORIGIN = "corpus.parquet", "of"  # that a fit writes: the inputs that a text is from, which is no unused column


@dataclass(frozen=True)
class SearchRequest:
    """A model and the data that it searches; None for the summaries of docstrings."""

    model: str
    data: str | None


@dataclass(frozen=True)
class SearchTarget:
    """Texts that are searched, and the name of each in a result."""

    texts: "pa.ChunkedArray"
    place: Callable[[int], str]


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
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Write a file with the vector of every sentence. Run the same command again to resume."""
    from sentloom.data.columns import text_column
    from sentloom.data.layout import EVERY
    from sentloom.encoder.vector_files import encode_to_file, encode_with_ray
    from sentloom.files import at_its_name

    if workers and engine != "ray":
        raise InputError("--workers", "the engine local has no workers", "", "leave it out, or add --engine ray")
    dataset = read(data, shape, columns, keep=EVERY, column=column, how={"sheet": sheet, "encoding": encoding})
    is_folder = at_its_name(Path(model)).is_dir()
    place = str(Path(model).resolve()) if is_folder else model  # workers may run in another folder
    opened = partial(load, place, pooling, device, precision, backend)
    encoder, name = opened(), text_column(dataset, column)
    texts, source = dataset.column(name), f"{dataset.sha256} {dataset.used} {name}"
    beside = dataset.others(name)
    with resumable():
        if engine == "ray":
            before = encode_with_ray(
                encoder, opened, texts, output, source=source, role=role, workers=workers, beside=beside
            )
        else:
            before = encode_to_file(encoder, texts, output, source=source, role=role, beside=beside)
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
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Show the sentences nearest to a query, by meaning and by whatever `fit` proved to add to it, such as words.

    Vectors are cached, so the next search is fast.
    """
    from sentloom.encoder.vector_files import open_vectors
    from sentloom.report import data_tables
    from sentloom.search.system import Index

    request = choose(first, model, within)
    encoder = load(request.model, pooling, device, precision, backend)
    target = ground(request.data, column, shape, columns, {"sheet": sheet, "encoding": encoding})
    documents = (
        open_vectors(vectors, (len(target.texts), encoder.dimension))
        if vectors
        else cached_vectors(encoder, target.texts)
    )
    index = Index(target.texts, documents, encoder.system)
    if encoder.system.recorded():
        show(f"searching by {encoder.system}")
    for query in queries or asked():
        numbers, scores = index.find([query], encoder.encode([query], role="query"), k)
        results = [
            (float(value), target.place(int(row)), str(target.texts[int(row)]))
            for row, value in zip(numbers[0], scores[0], strict=True)
        ]
        show("", data_tables.answers(query, results))


def choose(first: str, model: str | None, within: str | None) -> SearchRequest:
    """What the first argument is: data, or a model folder, which searches `within` or its own corpus."""
    from sentloom.encoder.locate import refuse_unwritten

    if not is_model_folder(Path(first)):
        refuse_unwritten(first)
        if within is not None:
            problem, fix = f"{first} is not a model folder", "use search MODEL --in DATA, or search DATA --model MODEL"
            raise InputError("--in", problem, "a model folder before it", fix)
        _check_data(first)
        return SearchRequest(model or "embedded", first)
    if model is not None:
        raise InputError(
            "--model", f"{model} is given in addition to the model folder {first}", "one model", "leave one out"
        )
    if within is not None:
        return SearchRequest(first, within)
    corpus = Path(f"{os.path.abspath(first)}.fit", CORPUS)  # noqa: PTH100 - a link's own name counts
    if corpus.is_file():
        show(f"searching what {first} was fitted on")
        return SearchRequest(first, str(corpus))
    place = Path(corpus.parent.name, corpus.name)
    show(f"there is no {place} beside {first}: searching the docstrings of installed packages")
    return SearchRequest(first, None)


def _check_data(name: str) -> None:
    """Refuse a name that is no data; it could also have been a model. Hub names are left to the hub."""
    from sentloom.data.inputs import find_inputs, hub_name

    if name.startswith("embedded") or hub_name(name) is not None:
        return
    try:
        find_inputs(name)
    except InputError as error:
        expected = ", or ".join(filter(None, (error.expected, "a model folder")))
        raise InputError(error.where, error.problem, expected, error.fix) from None


def is_model_folder(folder: Path) -> bool:
    """Whether this is a model folder. Its vocab.txt could be data too; a config.json alone does not make a model."""
    from sentloom.encoder.model_files import read_json
    from sentloom.files import at_its_name

    if (at_its_name(folder) / "modules.json").is_file():
        return True
    config = folder / "config.json"
    return config.is_file() and "model_type" in read_json(config)


def ground(
    name: str | None,
    column: str | None,
    shape: "Shape | None",
    columns: str | None,
    how: Mapping[str, str | None],
) -> SearchTarget:
    """The texts of a file, of pairs the answers, by line or row; or the summaries of docstrings, by name.

    A folder with judgements is searched for the documents of its corpus.
    """
    from sentloom.data.beir import CORPUS as DOCUMENTS
    from sentloom.data.beir import splits_of
    from sentloom.data.columns import searched_column
    from sentloom.data.inputs import named
    from sentloom.data.layout import EVERY
    from sentloom.data.shapes import text_columns

    if name is None:
        pairs = summaries()
        names = pairs.column("anchor")
        return SearchTarget(pairs.column(searched_column(pairs, column)), lambda row: str(names[row]))
    of_fit = Path(name).name == CORPUS
    name = named(name, split=DOCUMENTS) if splits_of(name) else name
    data = read(name, shape, columns, keep=(ORIGIN,) if of_fit else EVERY, column=column, how=how)
    searched = searched_column(data, column)
    beside = data.table.select([]) if of_fit else data.others(*text_columns(data.shape))
    return SearchTarget(data.column(searched), partial(_place, data, beside))


def _place(data: "Dataset", beside: "pa.Table", row: int) -> str:
    """Where a row is, and the first of its other columns that say something: its title and section, or its ids."""
    file = data.files[0] if len(data.files) == 1 else os.path.commonpath([*data.files[:1], *data.files[-1:]])
    place = data.place(row).removeprefix(file).lstrip("/, ")
    cells = {name: shortened(beside.column(name)[row].as_py()) for name in beside.column_names if name not in UNSHOWN}
    return " · ".join([place, *(f"{name}: {cell}" for name, cell in cells.items() if cell)][: 1 + SHOWN_COLUMNS])


def shortened(cell: object) -> str:
    """A cell as it is shown beside a result."""
    text = "" if cell is None else " ".join(str(cell).split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def summaries() -> "Dataset":
    """Names and summaries of all packages that we know of. They are cached, since reading them takes minutes."""
    from sentloom import __version__
    from sentloom.data.corpus.docstrings import DEFAULT_PACKAGES, harvest
    from sentloom.data.corpus.opening import open_data
    from sentloom.data.corpus.packages import import_names, locate
    from sentloom.data.writers import write
    from sentloom.files import cache_folder, is_sealed, seal

    files = [file for name in import_names(DEFAULT_PACKAGES) for _, file in locate(name) or ()]
    facts = [__version__, *(f"{file} {(stat := file.stat()).st_size} {stat.st_mtime_ns}" for file in files)]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:20]
    place = cache_folder() / "docstrings" / f"{key}.parquet"
    if is_sealed(place):
        return open_data(place)
    show("reading the docstrings of the installed packages, once ...")
    pairs = harvest(DEFAULT_PACKAGES, [], show_progress=True).pairs()
    with suppress(OSError):  # without a cache, reading takes its time again
        write(pairs, place)
        seal(place)
    return pairs


def cached_vectors(encoder: "Encoder", texts: "pa.ChunkedArray") -> "Vectors":
    """The vectors of texts, from the cache if an earlier search has computed them."""
    from sentloom.files import cache_folder
    from sentloom.search.vectors import VectorCache

    cache = VectorCache(cache_folder() / "vectors")
    encode = partial(encoder.encode, role="document")
    vectors = cache.vectors(f"{encoder.fingerprint()}-document", texts.to_pylist(), encode, show_progress=True)
    if cache.note:
        show(cache.note)
    return vectors


def asked() -> Iterator[str]:
    """Queries as they are typed, up to an empty line; or every line of a pipe that is not blank."""
    return _typed() if sys.stdin.isatty() else _piped()


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401 - lines can then be edited, and come back with the arrow keys
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a key that sends half a character is no reason to stop
    show("Type what you are looking for; an empty line ends.")
    with suppress(EOFError, KeyboardInterrupt):
        while query := input(PROMPT).strip():
            yield query


def _piped() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            query = line.decode().strip()
        except UnicodeDecodeError:
            raise InputError(
                f"standard input, line {number}", "the text is not UTF-8", "text in UTF-8", "convert it"
            ) from None
        if query:
            yield query
