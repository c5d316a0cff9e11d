"""The embedded corpus: the docstrings of installed Python packages, parsed with `ast` without importing anything.

A real domain that is available wherever sentloom is installed: sentences, and pairs of a qualified name and its summary
line, `scipy.spatial.distance.cdist` and "Compute distance between each pair of the two collections of inputs.". The
split is by package; text of a held-out package is removed from training. The same environment gives the same rows.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, NamedTuple

import pyarrow as pa

from sentloom.data.corpus.packages import (
    STANDARD_LIBRARY,
    DocstringSource,
    PublicNames,
    import_names,
    locate,
    read_sources,
)
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import COLUMNS, Shape, arrow_type
from sentloom.errors import InputError, MissingPart
from sentloom.progress import progress

Split = Literal["train", "held-out"]

# The standard library, sentloom's dependencies, and packages that its users are likely to have.
DEFAULT_PACKAGES = (
    STANDARD_LIBRARY,
    "accelerate",
    "click",
    "datasets",
    "fsspec",
    "huggingface_hub",
    "jinja2",
    "joblib",
    "matplotlib",
    "mpmath",
    "networkx",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "sympy",
    "torch",
    "transformers",
    "typer",
)
DEFAULT_HELD_OUT = ("scipy",)
NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


class _Row(NamedTuple):
    cells: tuple[str, ...]
    file: str
    line: int
    key: str  # the letters and digits of the last cell: rows with equal keys have the same sentence

    @classmethod
    def of(cls, cells: tuple[str, ...], file: str, line: int) -> "_Row":
        return cls(cells, file, line, NOT_ALPHANUMERIC.sub("", cells[-1].casefold()))


@dataclass(frozen=True)
class PackageCount:
    """What one package contributed."""

    package: str
    split: Split
    files: int
    sentences: int  # not counting those of earlier packages
    pairs: int


@dataclass(frozen=True)
class DocstringCorpus:
    """Sentences and pairs of the training packages and of the held-out packages."""

    packages: tuple[PackageCount, ...]
    missing: tuple[str, ...]  # requested packages that are not installed
    data: Mapping[tuple[Split, Shape], Dataset]

    def texts(self, split: Split = "train") -> Dataset:
        """Return distinct prose sentences."""
        return self.data[split, Shape.TEXTS]

    def pairs(self, split: Split = "train") -> Dataset:
        """Return pairs of qualified name (anchor) and summary (positive), both distinct within a package."""
        return self.data[split, Shape.PAIRS]


def harvest(
    packages: Sequence[str] | None = None,
    held_out: Sequence[str] | None = None,
    *,
    workers: int | None = None,
    show_progress: bool = False,
) -> DocstringCorpus:
    """Read the docstrings of the named packages (default: DEFAULT_PACKAGES), separating those in `held_out`.

    Packages are given by distribution or import name; "stdlib" is the standard library. `held_out` defaults to scipy if
    it is among the packages. `workers` processes (default: one per core) share the parsing; the result is the same.
    """
    names = import_names(DEFAULT_PACKAGES if packages is None else packages)
    held = import_names(sorted(set(DEFAULT_HELD_OUT) & set(names)) if held_out is None else held_out)
    if unknown := [name for name in held if name not in names]:
        problem = f"not in `packages`: {', '.join(unknown)}"
        raise InputError("held_out", problem, "", "add them to `packages` too")
    files = {name: located for name in names if (located := locate(name)) is not None}
    missing = tuple(name for name in names if name not in files)
    if not files:
        raise MissingPart("packages", "none of them is installed", "at least one", f"pip install {' '.join(missing)}")
    every = list(chain.from_iterable(files.values()))
    sources = []
    with progress("reading docstrings", len(every), "files", show_progress) as advance:
        for source in read_sources(every, workers or os.cpu_count() or 1):
            sources.append(source)
            advance(1)
    rest = iter(sources)
    parsed = [_Package.of(name, name in held, list(islice(rest, len(files[name])))) for name in files]
    return _split(parsed, missing)


@dataclass(frozen=True)
class _Package:
    """The rows of one package, with distinct keys in each list."""

    name: str
    split: Split
    files: int
    texts: tuple[_Row, ...]
    pairs: tuple[_Row, ...]

    @classmethod
    def of(cls, name: str, held_out: bool, files: Sequence[DocstringSource | None]) -> "_Package":
        sources = [file for file in files if file is not None]
        split: Split = "held-out" if held_out else "train"
        return cls(name, split, len(sources), tuple(_distinct(_texts(sources), set())), tuple(_pairs(sources)))


def _texts(sources: Iterable[DocstringSource]) -> Iterator[_Row]:
    for source in sources:
        for docstring in source.docstrings:
            for sentence in docstring.prose.sentences:
                yield _Row.of((sentence,), source.file, docstring.line)


def _pairs(sources: Sequence[DocstringSource]) -> Iterator[_Row]:
    """Yield public names with their summaries, one to one: repeated names and repeated summaries are left out."""
    public, named, said = PublicNames(source.module for source in sources), set(), set()
    for source in sources:
        for path, line, prose in source.docstrings:
            name = public.find(source.module.name, path)
            if name is None or prose.summary is None:
                continue
            row = _Row.of((name, prose.summary), source.file, line)
            if name not in named and row.key not in said:
                yield row
            named.add(name)
            said.add(row.key)


def _distinct(rows: Iterable[_Row], seen: set[str]) -> Iterator[_Row]:
    """Yield the rows whose key is not in `seen`, and add the keys to it."""
    for row in rows:
        if (key := row.key) not in seen:
            seen.add(key)
            yield row


def _split(packages: Sequence[_Package], missing: tuple[str, ...]) -> DocstringCorpus:
    """Split the rows; text of a held-out package is removed from the training side."""
    held_out = {row.key for pack in packages if pack.split == "held-out" for row in (*pack.texts, *pack.pairs)}
    seen: dict[Split, set[str]] = {"train": set(), "held-out": set()}
    texts: dict[Split, list[_Row]] = {"train": [], "held-out": []}
    pairs: dict[Split, list[_Row]] = {"train": [], "held-out": []}
    counts = []
    for pack in packages:
        banned: Set[str] = held_out if pack.split == "train" else frozenset()
        own_texts, own_pairs = ([row for row in rows if row.key not in banned] for rows in (pack.texts, pack.pairs))
        new_texts = list(_distinct(own_texts, seen[pack.split]))
        texts[pack.split] += new_texts
        pairs[pack.split] += own_pairs
        counts.append(PackageCount(pack.name, pack.split, pack.files, len(new_texts), len(own_pairs)))
    data = {(split, Shape.TEXTS): _dataset(Shape.TEXTS, rows) for split, rows in texts.items()}
    data |= {(split, Shape.PAIRS): _dataset(Shape.PAIRS, rows) for split, rows in pairs.items()}
    return DocstringCorpus(tuple(counts), missing, data)


def _dataset(shape: Shape, rows: Sequence[_Row]) -> Dataset:
    numbers = {file: number for number, file in enumerate(dict.fromkeys(row.file for row in rows))}
    columns = {name: [row.cells[place] for row in rows] for place, name in enumerate(COLUMNS[shape])}
    arrays = {name: pa.array(cells, arrow_type(name)) for name, cells in columns.items()}
    arrays[FILE] = pa.array([numbers[row.file] for row in rows], pa.int32())
    arrays[LINE] = pa.array([row.line for row in rows], pa.int64())
    return Dataset(shape, pa.table(arrays), tuple(numbers), "line", _sha256("\t".join(row.cells) for row in rows))


def _sha256(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()
