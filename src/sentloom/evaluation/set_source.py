"""Read evaluation sets and check their content.

They come from a data folder in our layout (`senteval/MR.tsv`), SentEval's own data folder
(`downstream/MR/rt-polarity.pos`), or the hub at pinned revisions. All are checked against the published counts.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from sentloom.data.dataset import Dataset
from sentloom.data.readers import read
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError, MissingPart, option
from sentloom.evaluation.task import NOT_COMPARABLE

SUFFIXES = (".tsv", ".tsv.gz")
SLIPS = 0.01  # the share of labels that may differ from the published counts


class NoCopy(MissingPart):
    """A set that the hub does not have: only a data folder can."""


class UnlikePublished(InputError):
    """The counts of a set differ from the published ones."""


@dataclass(frozen=True)
class SetSource:
    """Where to read sets: a folder, or the hub if None. Without `checked`, wrong counts are noted, not refused."""

    folder: Path | None = None
    checked: bool = True
    probe: Mapping[str, Any] = field(default_factory=dict)  # options of `Probe`
    clustered: Callable[[Dataset], Dataset] | None = None  # adds a column of clusters to the user's own rows
    corpus: Sequence[str] = ()  # more documents that the queries of the user's own files search


@dataclass(frozen=True)
class SetPart:
    """A published part of a set, with its file names and its name on the hub."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=False)

    name: str  # "MR", "SST-2 train": used in messages
    rows: int | None  # published number; None: any number
    files: tuple[str, ...] = ()  # below the data folder, without suffix; the first existing one is read
    hub: str = ""  # owner/name[/configuration]@revision:split, or several splits: train+validation
    labels: Mapping[str, int] | None = None  # published count of each label
    also: Mapping[int, str] = field(default_factory=dict)  # other counts in use -> what they are
    sha256: tuple[str, ...] = ()  # of contents that were verified against the published ones


@dataclass(frozen=True)
class Rows:
    """The columns of a part, all of the same length."""

    columns: Mapping[str, Sequence[Any]]
    source: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, column: str) -> Sequence[Any]:
        return self.columns[column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def noted(self, notes: tuple[str, ...]) -> "Rows":
        """The same rows with more notes."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    @cached_property
    def sha256(self) -> str:
        """A hash of the content: the same for a plain file, a compressed file and the hub."""
        digest = hashlib.sha256()
        for name in sorted(self.columns):
            digest.update(json.dumps([name, list(self.columns[name])], ensure_ascii=False).encode())
        return digest.hexdigest()


def joint_sha256(rows: Rows, known: Rows | None) -> str:
    """A hash of the content of both."""
    return hashlib.sha256(f"{rows.sha256} {known.sha256}".encode()).hexdigest() if known else rows.sha256


def read_part(part: SetPart, origin: SetSource, shape: Shape, keep: Sequence[str] = ()) -> Rows:
    """Read and check the canonical columns of a part (and those in `keep`), from the folder or the hub."""
    return check(read_rows(part, origin, shape, keep), part, origin)


def read_rows(part: SetPart, origin: SetSource, shape: Shape, keep: Sequence[str] = ()) -> Rows:
    """Read a part like `read_part`, without checking it."""
    source = part.hub if origin.folder is None else str(find_file(part, origin.folder))
    if not source:
        problem, fix = (
            "there is no copy on the hub at a pinned revision",
            f"give a data folder: {option('data', 'DIR')}",
        )
        raise NoCopy(part.name, problem, f"a file {_wanted(part)}", fix)
    sources = [source] if origin.folder is not None else _splits(source)
    try:
        data = [read(split, shape=shape, keep=keep) for split in sources]
    except (InputError, MissingPart) as error:
        if origin.folder is not None:
            raise
        fix = f"give a data folder: {option('data', 'DIR')}; or {error.fix}"
        raise MissingPart(part.name, error.problem, f"the set {source} on the hub", fix) from error
    needed = {*COLUMNS[shape], *keep}
    names = [name for name in data[0].table.column_names if name in needed]
    return Rows({name: [*chain(*(split.column(name).to_pylist() for split in data))] for name in names}, source)


def _splits(hub: str) -> list[str]:
    """Expand `owner/name:train+test` into the names of its splits."""
    name, colon, splits = hub.partition(":")
    return [f"{name}{colon}{split}" for split in splits.split("+")]


def find_file(part: SetPart, folder: Path) -> Path:
    """Find the part's file in a data folder."""
    for name in part.files:
        for suffix in SUFFIXES:
            if (file := folder / f"{name}{suffix}").is_file():
                return file
    fix = f"save the set as {folder / _wanted(part)}; the files of a data folder are listed in docs/sets.md"
    raise MissingPart(part.name, f"the folder {folder} has no file {_wanted(part)}", "", fix)


def check(rows: Rows, part: SetPart, origin: SetSource) -> Rows:
    """Add notes about deviations from the published part; refuse rows that cannot be the published part."""
    notes = [*rows.notes]
    _check_classes(rows, part)
    if part.rows is not None and len(rows) != part.rows:
        if len(rows) in part.also:
            notes.append(f"{part.also[len(rows)]}: {NOT_COMPARABLE} published scores")
        else:
            notes.append(_refuse_or_note(rows, part, origin, f"{len(rows):,} rows", f"{part.rows:,} rows"))
    elif part.labels is not None and (counts := Counter(map(str, rows["label"]))) != Counter(part.labels):
        notes.append(_label_note(counts, Counter(part.labels), rows, part, origin))
    local = origin.folder is not None  # copies on the hub are pinned by revision
    if local and part.sha256 and rows.sha256 not in part.sha256 and not notes:
        notes.append("the number of rows is as published, but the content differs from the verified copies")
    return Rows(rows.columns, rows.source, tuple(dict.fromkeys(notes)))


def _check_classes(rows: Rows, part: SetPart) -> None:
    """Refuse unknown labels: another column was probably read as labels."""
    if part.labels is not None and (strange := sorted(set(map(str, rows["label"])) - set(part.labels))):
        problem = f"there are {len(strange):,} unknown labels, such as {strange[0][:40]!r}"
        expected = f"the labels {', '.join(part.labels)}"
        raise InputError(f"{part.name} in {rows.source}", problem, expected, "check which column contains the labels")


def _label_note(actual: Counter[str], published: Counter[str], rows: Rows, part: SetPart, origin: SetSource) -> str:
    """Note label counts within 1% of the published ones, which may be corrections; refuse or note larger deviations."""
    say = [", ".join(f"{label}: {counts[label]:,}" for label in published) for counts in (actual, published)]
    if (published - actual).total() <= SLIPS * len(rows):
        return f"labels {say[0]}, but {say[1]} are published: not quite comparable with published scores"
    return _refuse_or_note(rows, part, origin, f"labels {say[0]}", f"labels {say[1]}")


def _refuse_or_note(rows: Rows, part: SetPart, origin: SetSource, actual: str, published: str) -> str:
    if origin.checked:
        raise UnlikePublished(
            f"{part.name} in {rows.source}",
            f"there are {actual}",
            f"{published}, as published",
            f"download the file again; `evaluate` with {option('unchecked', True)} scores it anyway",
        )
    return f"{actual}, but {published} are published: {NOT_COMPARABLE} published scores"


def _wanted(part: SetPart) -> str:
    return f"{part.files[0]}{SUFFIXES[0]}" if part.files else part.name
