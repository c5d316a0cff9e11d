"""Clusters: the rows that belong together, because they share sentences, near duplicates, ids or groups.

Sentences are compared as hashes that ignore case, spacing and punctuation, here and in splits and leak checks. Hard
negatives connect no rows: many rows share them, and they say nothing about which texts belong together. A negative
that is a text of a held-out row is left out of its row instead.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.data.columns import among, flat, hashes, only_column, walk
from sentloom.data.dataset import Dataset, scratch_table, take_rows
from sentloom.data.hygiene.leaks import forms
from sentloom.data.hygiene.near_duplicates import connect, leaders
from sentloom.data.shapes import Shape, text_columns
from sentloom.evaluation.task import CLUSTER
from sentloom.fitting.shapes import handler_of

Keys = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

NEGATIVES = "negatives"
FEWER = 0.8  # rows are grouped by their second text if it has fewer than this share of the first one's distinct texts
THRESHOLD = 0.8  # Jaccard index of five-character shingles: about one word in fifteen differs
MOST_SHARE = 0.05  # of the rows of an input may be in one cluster
MOST_TEXTS = 200_000  # rows of an input whose texts are compared for near duplicates


@dataclass(frozen=True)
class Links:
    """The keys of rows: row `rows[i]` has the key `keys[i]`. Rows with a key in common are connected."""

    rows: Integers
    keys: Keys


def joined(parts: Sequence[Links]) -> Links:
    """All links of several parts."""
    return Links(np.concatenate([part.rows for part in parts]), np.concatenate([part.keys for part in parts]))


@dataclass(frozen=True)
class Sentences:
    """The hashed sentences of a data set, by column. The grouping text decides which side a row is on."""

    columns: Mapping[str, Links]
    grouping: str  # a column

    @property
    def connecting(self) -> list[str]:
        """The columns whose sentences connect rows: all but hard negatives."""
        return [name for name in self.columns if name != NEGATIVES]

    @property
    def texts(self) -> Links:
        """The sentences that connect rows."""
        return joined([self.columns[name] for name in self.connecting])

    @property
    def draws(self) -> Keys:
        """(rows,): the hash of the grouping text."""
        return self.columns[self.grouping].keys

    def of(self, rows: npt.NDArray[np.bool_]) -> Keys:
        """The distinct sentences of some rows, without hard negatives, sorted."""
        texts = self.texts
        return np.unique(texts.keys[rows[texts.rows]])

    def touching(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """(rows,): whether any of a row's sentences, without hard negatives, is among `keys`, which are sorted."""
        touched, texts = np.zeros(len(self.draws), bool), self.texts
        touched[texts.rows[among(texts.keys, keys)]] = True
        return touched

    @property
    def row_keys(self) -> Keys:
        """(rows,): a hash of all sentences of a row."""
        sums, texts = np.zeros(len(self.draws), np.uint64), joined(list(self.columns.values()))
        np.add.at(sums, texts.rows, texts.keys)
        return sums

    @property
    def distinct_rows(self) -> int:
        """The number of rows that differ in more than case, spacing and punctuation."""
        return len(np.unique(self.row_keys))


def sentences(data: Dataset) -> Sentences:
    """Hash every sentence of all text columns, in one pass."""
    names = text_columns(data.shape)
    parts = {name: [Links(np.empty(0, np.int64), np.empty(0, np.uint64))] for name in names}
    for start, batch in walk(data, names):
        for name in names:
            texts, owner = flat(batch.column(name))
            parts[name].append(Links(start + owner, forms(texts)[-1]))
    columns = {name: joined(links) for name, links in parts.items()}
    return Sentences(columns, grouping_column(data.shape, {name: links.keys for name, links in columns.items()}))


def grouping_column(shape: Shape, keys: Mapping[str, Keys]) -> str:
    """The column whose text decides where a row goes: the first, or the second if it has fewer distinct texts.

    Otherwise a few hundred answers to thousands of questions would be on every side, and all training rows dropped.
    """
    first, *others = [name for name in keys if name != NEGATIVES]
    if not others or handler_of(shape).divided_by_first:
        return first
    return others[0] if len(np.unique(keys[others[0]])) < FEWER * len(np.unique(keys[first])) else first


def distinct_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, with hard negatives, as sorted hashes."""
    return union([links.keys for data in datas for links in sentences(data).columns.values()])


def connecting_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, without hard negatives, as sorted hashes."""
    return union([sentences(data).texts.keys for data in datas])


def union(parts: Sequence[Keys]) -> Keys:
    """All keys once, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))


def apart_from(data: Dataset, keys: Keys) -> Dataset:
    """The rows that share no sentence with `keys`, which are sorted; hard negatives among these leave their rows."""
    touching = sentences(data).touching(keys)
    return without_negatives(data.select(~touching) if touching.any() else data, keys)


def without_negatives(data: Dataset, keys: Keys) -> Dataset:
    """The same rows without the hard negatives among `keys`, which are sorted. A row may be left with none."""
    if NEGATIVES not in text_columns(data.shape) or not len(keys):
        return data
    table = scratch_table(data.table.schema, (_without_negatives(batch, keys) for _, batch in walk(data)))
    return data.derive(table, f"without the negatives {hashlib.sha256(keys.tobytes()).hexdigest()}")


def _without_negatives(batch: pa.RecordBatch, keys: Keys) -> pa.RecordBatch:
    place = batch.schema.get_field_index(NEGATIVES)
    texts, owner = flat(batch.column(place))
    keep = ~among(forms(texts)[-1], keys)
    offsets = np.cumsum([0, *np.bincount(owner[keep], minlength=batch.num_rows)])
    kind = batch.schema.field(place).type
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.filter(pa.array(keep)), type=kind)
    return batch.set_column(place, batch.schema.field(place), lists)


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


@dataclass(frozen=True)
class Clusters:
    """The cluster of each row of each input; equal numbers mean the same cluster, also across inputs."""

    numbers: tuple[Integers, ...]
    notes: tuple[str, ...]  # what connected rows could not be used, and why


def find_clusters(inputs: Sequence[InputRows]) -> Clusters:
    """Connect rows by shared texts, near duplicates, ids of documents and the user's groups.

    No cluster may hold more than `MOST_SHARE` of an input's rows. If one would, this input is clustered by less, in the
    end by its grouping text alone, with a note.
    """
    ways, used = [_ways(rows) for rows in inputs], [0] * len(inputs)
    while True:
        links = [own_ways[at].links() for own_ways, at in zip(ways, used, strict=True)]
        numbers = _connected(links, [len(rows.data) for rows in inputs])
        wide = [at for at, own in enumerate(numbers) if _largest(own) > MOST_SHARE and used[at] + 1 < len(ways[at])]
        if not wide:
            chosen = [own_ways[at] for own_ways, at in zip(ways, used, strict=True)]
            return Clusters(numbers, tuple(_notes(inputs, ways, chosen, numbers)))
        for at in wide:
            used[at] += 1


def clustered(data: Dataset, first: int = 0) -> Dataset:
    """The rows with a column that has the cluster of each, numbered from `first`, for sets that the user named."""
    (numbers,) = find_clusters([rows_of(data.files[0], data)]).numbers
    return with_clusters(data, numbers + first)


def with_clusters(rows: Dataset, numbers: Integers) -> Dataset:
    """The rows with a column that has the cluster of each."""
    return rows.derive(rows.table.append_column(CLUSTER, pa.array(numbers)), "with clusters")


@dataclass(frozen=True)
class _Way:
    """One way to connect the rows of an input. Links are made when needed: most inputs only need the first way."""

    what: str
    links: Callable[[], Links]
    by_groups: bool = False


def _ways(rows: InputRows) -> list[_Way]:
    """From everything that connects rows to the grouping text alone."""
    texts, grouping = rows.sentences.texts, rows.sentences.columns[rows.sentences.grouping]
    ids = [_id_links(rows.data, name) for name in rows.groups]
    grouped = bool(ids)
    ways = [_Way("equal texts and groups" if ids else "equal texts", lambda: joined([texts, *ids]), grouped)]
    if len(rows.data) <= MOST_TEXTS:
        near = "equal and nearly equal texts"
        ways.insert(0, _Way(f"{near}, and groups" if ids else near, lambda: joined([_near_links(rows), *ids]), grouped))
    if ids:
        ways.append(_Way(f"groups and {_grouping_text(rows)}", lambda: joined([grouping, *ids]), by_groups=True))
    return [*ways, _Way(f"{_grouping_text(rows)} alone", lambda: grouping)]


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
    rows = np.concatenate([own.rows + start for own, start in zip(links, starts[:-1], strict=True)])
    _, node = np.unique(np.concatenate([own.keys for own in links]), return_inverse=True)
    total = int(starts[-1])
    edges = np.column_stack([rows, total + node])
    return tuple(np.split(connect(total + int(node.max(initial=-1)) + 1, edges)[:total], starts[1:-1]))


def _largest(numbers: Integers) -> float:
    """The share of the largest cluster; two rows that belong together are never too many."""
    counts = np.unique(numbers, return_counts=True)[1]
    most = int(counts.max(initial=0))
    return most / len(numbers) if most > 2 else 0.0


def _notes(
    inputs: Sequence[InputRows], ways: Sequence[Sequence[_Way]], chosen: Sequence[_Way], numbers: Sequence[Integers]
) -> Iterator[str]:
    for rows, own_ways, way, own in zip(inputs, ways, chosen, numbers, strict=True):
        if way is not own_ways[0]:
            yield (
                f"{rows.name}: connecting rows by {own_ways[0].what} would put more than {MOST_SHARE:.0%} of them "
                f"into one cluster, so they are clustered by {way.what}{_given_up(rows, way)}"
            )
        if len(rows.data) > MOST_TEXTS:
            yield f"{rows.name}: more than {MOST_TEXTS:,} rows, so nearly equal texts are not searched for"
        if (share := _largest(own)) > MOST_SHARE:
            yield f"{rows.name}: {share:.0%} of the rows are in one cluster, which makes its intervals less reliable"


def _given_up(rows: InputRows, way: _Way) -> str:
    """The columns that the user named, or that were recognised, if they connect nothing in the end."""
    lost = rows.groups and not way.by_groups
    return f"; {', '.join(map(repr, rows.groups))} has no effect" if lost else ""
