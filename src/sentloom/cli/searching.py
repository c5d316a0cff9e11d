"""What `search` searches, with which model, and where its queries come from."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from sentloom.cli.common import read, show
from sentloom.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from sentloom.data import Dataset
    from sentloom.data.shapes import Shape
    from sentloom.encoder import Encoder
    from sentloom.search.vectors import Vectors

PROMPT = "search> "
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


def choose(first: str, model: str | None, within: str | None) -> SearchRequest:
    """What the first argument is: data, or a model folder, which searches `within` or its own corpus."""
    from sentloom.encoder.locate import refuse_unwritten

    if not is_model_folder(Path(first)):
        refuse_unwritten(first)
        if within is not None:
            found, fix = f"{first} is not a model folder", "use search MODEL --in DATA, or search DATA --model MODEL"
            raise InputError("--in", found, "a model folder before it", fix)
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

    if (folder / "modules.json").is_file():
        return True
    config = folder / "config.json"
    return config.is_file() and "model_type" in read_json(config)


def ground(name: str | None, column: str | None, shape: "Shape | None", columns: str | None) -> SearchTarget:
    """The texts of a file, of pairs the answers, by line or row; or the summaries of docstrings, by name."""
    from sentloom.data.columns import searched_column

    if name is None:
        pairs = summaries()
        names = pairs.column("anchor")
        return SearchTarget(pairs.column(searched_column(pairs, column)), lambda row: str(names[row]))
    keep = (ORIGIN,) if Path(name).name == CORPUS else ()
    data = read(name, shape, columns, keep=keep, column=column)
    texts = data.column(searched_column(data, column))
    return SearchTarget(texts, lambda row: data.place(row).removeprefix(f"{name}, "))


def summaries() -> "Dataset":
    """Names and summaries of all packages that we know of. They are cached, since reading them takes minutes."""
    from sentloom import __version__
    from sentloom.corpus.docstrings import DEFAULT_PACKAGES, harvest
    from sentloom.corpus.opening import open_data
    from sentloom.corpus.sources import import_names, locate
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
    from sentloom.search.vector_cache import VectorCache

    cache = VectorCache(cache_folder() / "vectors")
    encode = partial(encoder.encode, role="document")
    found = cache.vectors(f"{encoder.fingerprint()}-document", texts.to_pylist(), encode, show_progress=True)
    if cache.note:
        show(cache.note)
    return found


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
