"""What `search` looks in and with which model, and where its queries come from."""

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

from sentloom.cli.common import read, show, text_column
from sentloom.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from sentloom.data import Dataset
    from sentloom.data.shapes import Shape
    from sentloom.encoder import Encoder
    from sentloom.search.vectors import Vectors

PROMPT = "search> "


@dataclass(frozen=True)
class Wanted:
    """A model, and the data that it is to look in; None: the summaries of docstrings."""

    model: str
    data: str | None


@dataclass(frozen=True)
class SearchTarget:
    """Texts that are searched, and how each is called in an answer."""

    texts: "pa.ChunkedArray"
    place: Callable[[int], str]


def choose(first: str, model: str | None, within: str | None) -> Wanted:
    """What the command's first word is: data, or a model folder, which looks in `within` or in its own corpus."""
    if not is_model_folder(Path(first)):
        if within is not None:
            found, fix = f"{first}, which is no model folder, before it", "or say: search DATA --model MODEL"
            raise InputError("--in", found, "a model folder: search MODEL --in DATA", f"correct it, {fix}")
        return Wanted(model or "embedded", first)
    if model is not None:
        raise InputError("--model", f"{model}, and the model folder {first} before it", "one model", "leave one out")
    if within is not None:
        return Wanted(first, within)
    corpus = Path(f"{os.path.abspath(first)}.fit", "corpus.parquet")  # noqa: PTH100 - a link's own name counts
    if corpus.is_file():
        show(f"looking in what {first} was fitted on")
        return Wanted(first, str(corpus))
    show(f"no {Path(corpus.parent.name, corpus.name)} beside {first}: looking in the docstrings of installed packages")
    return Wanted(first, None)


def is_model_folder(folder: Path) -> bool:
    """Whether a model lies there: its vocab.txt would make it data too. A config.json of others makes no model."""
    from sentloom.encoder.model_files import read_json

    if (folder / "modules.json").is_file():
        return True
    config = folder / "config.json"
    return config.is_file() and "model_type" in read_json(config)


def ground(name: str | None, column: str | None, shape: "Shape | None", columns: str | None) -> SearchTarget:
    """The texts of a file, by line or row; or the summaries of docstrings, by the names that they belong to."""
    if name is None:
        pairs = summaries()
        names = pairs.column("anchor")
        return SearchTarget(pairs.column(text_column(pairs, column or "positive")), lambda row: str(names[row]))
    data = read(name, shape, columns)
    return SearchTarget(data.column(text_column(data, column)), lambda row: data.place(row).removeprefix(f"{name}, "))


def summaries() -> "Dataset":
    """Names and summaries of all packages that we know of. Kept: reading them takes minutes."""
    from sentloom import __version__
    from sentloom.corpus.docstrings import DEFAULT_PACKAGES, harvest
    from sentloom.corpus.opening import open_data
    from sentloom.corpus.sources import import_names, locate
    from sentloom.data.writers import write
    from sentloom.files import is_sealed, seal
    from sentloom.search.vector_cache import default_folder

    files = [file for name in import_names(DEFAULT_PACKAGES) for _, file in locate(name) or ()]
    facts = [__version__, *(f"{file} {(stat := file.stat()).st_size} {stat.st_mtime_ns}" for file in files)]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:20]
    place = default_folder().parent / "docstrings" / f"{key}.parquet"
    if is_sealed(place):
        return open_data(place)
    show("reading the docstrings of the installed packages, once ...")
    pairs = harvest(DEFAULT_PACKAGES, [], show_progress=True).pairs()
    with suppress(OSError):  # a disk that does not take them costs the time again
        write(pairs, place)
        seal(place)
    return pairs


def kept_vectors(encoder: "Encoder", texts: "pa.ChunkedArray") -> "Vectors":
    """The vectors of texts; those that an earlier search had are read."""
    from sentloom.search.vector_cache import VectorCache, default_folder

    cache = VectorCache(default_folder())
    encode = partial(encoder.encode, role="document")
    found = cache.vectors(f"{encoder.fingerprint()}-document", texts.to_pylist(), encode, show_progress=True)
    if cache.note:
        show(cache.note)
    return found


def asked() -> Iterator[str]:
    """Queries as they are typed, up to an empty line; of a pipe, every line that is not blank."""
    return _typed() if sys.stdin.isatty() else _piped()


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401 - lines can then be edited, and come back with the arrow keys
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a key that sends half a character is no reason to stop
    show("type what you look for; an empty line ends")
    with suppress(EOFError, KeyboardInterrupt):
        while query := input(PROMPT).strip():
            yield query


def _piped() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            query = line.decode().strip()
        except UnicodeDecodeError:
            found = "bytes that are not UTF-8"
            raise InputError(f"standard input, line {number}", found, "text in UTF-8", "convert it") from None
        if query:
            yield query
