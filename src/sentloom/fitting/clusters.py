"""Clusters: rows that are not independent, because they share a text, nearly repeat each other, or are in one group.

Hard negatives do not connect rows (`sentence_keys`).

A model that does well on one row of a cluster tends to do well on the others. So a cluster is never divided between
training, validation and test rows, and intervals are computed over clusters (docs/statistics.md).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sentloom.data.columns import hashes, only_column, walk
from sentloom.data.dataset import Dataset
from sentloom.data.scratch import take_rows
from sentloom.evaluation.task import CLUSTER
from sentloom.fitting.sentence_keys import Integers, Links, Sentences, joined, sentences
from sentloom.hygiene.near_duplicates import connect, leaders

THRESHOLD = 0.8  # Jaccard index of five-character shingles: about one word in fifteen differs
MOST_SHARE = 0.05  # of the rows of an input may be in one cluster
MOST_TEXTS = 200_000  # rows of an input whose texts are compared for near duplicates


@dataclass(frozen=True)
class Clusters:
    """The cluster of each row of each input; equal numbers mean the same cluster, also across inputs."""

    numbers: tuple[Integers, ...]
    notes: tuple[str, ...]  # what connected rows could not be used, and why


@dataclass(frozen=True)
class InputRows:
    """The rows of one input: their sentences, and the columns besides the texts that connect them."""

    name: str
    data: Dataset
    sentences: Sentences
    groups: tuple[str, ...] = ()


def rows_of(name: str, data: Dataset, groups: tuple[str, ...] = ()) -> InputRows:
    """The rows of an input, with their sentences hashed."""
    return InputRows(name, data, sentences(data), groups)


def find_clusters(inputs: Sequence[InputRows]) -> Clusters:
    """Connect rows by shared texts, near duplicates, ids of documents and the user's groups.

    No cluster may hold more than `MOST_SHARE` of an input's rows. If one would, this input is clustered by less, in the
    end by its grouping text alone, with a note.
    """
    ways, used = [_ways(one) for one in inputs], [0] * len(inputs)
    while True:
        links = [some[at].links() for some, at in zip(ways, used, strict=True)]
        numbers = _connected(links, [len(one.data) for one in inputs])
        wide = [at for at, some in enumerate(numbers) if _largest(some) > MOST_SHARE and used[at] + 1 < len(ways[at])]
        if not wide:
            chosen = [some[at] for some, at in zip(ways, used, strict=True)]
            return Clusters(numbers, tuple(_notes(inputs, ways, chosen, numbers)))
        for at in wide:
            used[at] += 1


def clustered(data: Dataset, first: int = 0) -> Dataset:
    """Some rows with a column that has the cluster of each, numbered from `first`, for sets that the user named."""
    (numbers,) = find_clusters([rows_of(data.files[0], data)]).numbers
    return with_clusters(data, numbers + first)


def with_clusters(rows: Dataset, numbers: Integers) -> Dataset:
    """Some rows, with a column that has the cluster of each."""
    return rows.derive(rows.table.append_column(CLUSTER, pa.array(numbers)), "with clusters")


@dataclass(frozen=True)
class _Way:
    """One way to connect the rows of an input. Links are made when needed: most inputs only need the first way."""

    what: str
    links: Callable[[], Links]


def _ways(rows: InputRows) -> list[_Way]:
    """From everything that connects rows to the grouping text alone."""
    texts, grouping = rows.sentences.texts, rows.sentences.columns[rows.sentences.grouping]
    ids = [_id_links(rows.data, name) for name in rows.groups]
    found = [_Way("equal texts and groups" if ids else "equal texts", lambda: joined([texts, *ids]))]
    if len(rows.data) <= MOST_TEXTS:
        near = "equal and nearly equal texts"
        found.insert(0, _Way(f"{near}, and groups" if ids else near, lambda: joined([_near_links(rows), *ids])))
    if ids:
        found.append(_Way(f"groups and {_grouping_text(rows)}", lambda: joined([grouping, *ids])))
    return [*found, _Way(f"{_grouping_text(rows)} alone", lambda: grouping)]


def _grouping_text(rows: InputRows) -> str:
    """The column of the grouping text, by its name in the file."""
    column = rows.sentences.grouping
    return f"the text in {rows.data.used.get(column, column)!r}"


def _near_links(rows: InputRows) -> Links:
    """The texts of all columns but hard negatives, a near duplicate under the key of its leader."""
    parts = []
    for name in rows.sentences.connecting:
        links = rows.sentences.columns[name]
        distinct, first, inverse = np.unique(links.keys, return_index=True, return_inverse=True)
        if len(distinct) > 1:  # in the order of the keys, whatever the order of the rows
            texts = only_column(rows.data, name)
            distinct = distinct[leaders(texts.derive(take_rows(texts.table, first), "distinct"), THRESHOLD)]
        parts.append(Links(links.rows, distinct[inverse]))
    return joined(parts)


def _id_links(data: Dataset, name: str) -> Links:
    """The cells of a column that connect rows; an empty one connects nothing."""
    rows, cells = list[int](), list[str]()
    for start, batch in walk(data, (name,)):
        for at, cell in enumerate(batch.column(0).to_pylist(), start):
            if cell is not None and str(cell).strip():
                rows.append(at)
                cells.append(f"{name}\0{cell}")  # an id of one column is no id of another, and no text
    return Links(np.array(rows, np.int64), hashes(pa.array(cells, pa.large_string())))


def _connected(links: Sequence[Links], sizes: Sequence[int]) -> tuple[Integers, ...]:
    """Number the connected components over all inputs, by their first rows."""
    starts = np.cumsum([0, *sizes])
    rows = np.concatenate([one.rows + start for one, start in zip(links, starts[:-1], strict=True)])
    _, node = np.unique(np.concatenate([one.keys for one in links]), return_inverse=True)
    total = int(starts[-1])
    edges = np.column_stack([rows, total + node])
    return tuple(np.split(connect(total + int(node.max(initial=-1)) + 1, edges)[:total], starts[1:-1]))


def _largest(numbers: Integers) -> float:
    """The share of the largest cluster; two rows that belong together are never too many."""
    counts = np.unique(numbers, return_counts=True)[1]
    most = int(counts.max(initial=0))
    return most / len(numbers) if most > 2 else 0.0


def _given_up(rows: InputRows, way: _Way) -> str:
    """The columns that the user named, or that were recognised, if they connect nothing in the end."""
    lost = rows.groups and "groups" not in way.what
    return f"; {', '.join(map(repr, rows.groups))} has no effect" if lost else ""


def _notes(
    inputs: Sequence[InputRows], ways: Sequence[Sequence[_Way]], chosen: Sequence[_Way], numbers: Sequence[Integers]
) -> Iterator[str]:
    for one, some, way, own in zip(inputs, ways, chosen, numbers, strict=True):
        if way is not some[0]:
            yield (
                f"{one.name}: connecting rows by {some[0].what} would put more than {MOST_SHARE:.0%} of them into one "
                f"cluster, so they are clustered by {way.what}{_given_up(one, way)}"
            )
        if len(one.data) > MOST_TEXTS:
            yield f"{one.name}: more than {MOST_TEXTS:,} rows, so nearly equal texts are not searched for"
        if (share := _largest(own)) > MOST_SHARE:
            yield f"{one.name}: {share:.0%} of the rows are in one cluster, which makes its intervals less reliable"
