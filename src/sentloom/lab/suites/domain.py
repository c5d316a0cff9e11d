"""Special domains, scored as in the USEB benchmark, and BIOSSES as in GenSE.

AskUbuntu ranks 20 candidates per question (MAP). CQADupStack searches for duplicates in each of 12 forums (MAP@100,
averaged over forums). Twitter-URL and PIT-2015 detect paraphrases of tweets (average precision); pairs with a vote of
3, on which annotators disagreed, are dropped. BIOSSES is the correlation with the scores of 100 pairs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.data.inputs import find_inputs
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart, option
from sentloom.evaluation.pairs import correlation_task, detection_task, ranking_task
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, check, read_part
from sentloom.evaluation.task import Lookup, Score, Scores, Suite, Task, TaskSettings
from sentloom.lab.suites.set_tables import read_table

CUTOFF = 100
UNDECIDED = 3  # of grades 0 to 5 (PIT-2015) or 6 votes (Twitter-URL): higher is a paraphrase, lower is not
TABLE = read_table("domain")
ASKUBUNTU, TWITTER_URL, PIT, BIOSSES = (
    TABLE.parts[name] for name in ("AskUbuntu", "Twitter-URL", "PIT-2015", "BIOSSES")
)
FORUMS, HUB_NOTES = TABLE.forums, TABLE.hub_notes


def _biosses(origin: SetSource) -> Task:
    return correlation_task(BIOSSES.name, read_part(BIOSSES, origin, Shape.SCORED_PAIRS))


def _askubuntu(origin: SetSource) -> Task:
    if origin.folder is None:
        rows = _askubuntu_hub()
        return ranking_task(ASKUBUNTU.name, rows, rows["question"])
    rows = read_part(ASKUBUNTU, origin, Shape.SCORED_PAIRS)
    return ranking_task(ASKUBUNTU.name, rows, rows["sentence1"])


def _askubuntu_hub() -> Rows:
    """Join every query with its candidates; the hub stores texts, candidates and judgements in separate tables."""
    name, hub = ASKUBUNTU.name, ASKUBUNTU.hub
    queries, documents, right = _hub_search(name, hub)
    numbers, ranked = hub_columns(name, [hub.format("top_ranked", "test")], ["query-id"], ["corpus-ids"])
    pairs = [(str(query), str(document)) for query, ids in zip(numbers, ranked, strict=True) for document in ids]
    _check_ids(hub, pairs, queries, documents)
    columns: dict[str, list[Any]] = {
        "sentence1": [queries[query] for query, _ in pairs],
        "sentence2": [documents[document] for _, document in pairs],
        "score": [float(pair in right) for pair in pairs],
        "question": [query for query, _ in pairs],
    }
    return Rows(columns, hub.format("top_ranked", "test"), (HUB_NOTES[name],))


def _twitter(part: SetPart, origin: SetSource) -> Task:
    if origin.folder is None:
        return detection_task(part.name, _hub_pairs(part))
    rows = read_part(SetPart(part.name, None, part.files), origin, Shape.SCORED_PAIRS)
    return detection_task(part.name, check(_decided(rows), part, origin))


def _decided(rows: Rows) -> Rows:
    """Convert graded votes to labels 0 and 1; pairs that already have such labels are unchanged."""
    votes = np.asarray(rows["score"], np.float64)
    if votes.max() <= 1:
        return rows
    decided = votes != UNDECIDED
    columns: dict[str, list[Any]] = {side: [*compress(rows[side], decided)] for side in ("sentence1", "sentence2")}
    return Rows({**columns, "score": [float(vote > UNDECIDED) for vote in votes[decided]]}, rows.source, rows.notes)


def _hub_pairs(part: SetPart) -> Rows:
    """Read pairs in either layout of the hub: one pair per row, or one row with three lists."""
    columns = hub_columns(
        part.name, [part.hub], ["sent1", "sentence1"], ["sent2", "sentence2"], ["labels", "label", "score"]
    )
    if len(columns[0]) == 1:
        columns = [column[0] for column in columns]
    first, second, labels = columns
    scores = [float(label) for label in labels]
    return Rows({"sentence1": first, "sentence2": second, "score": scores}, part.hub, (HUB_NOTES[part.name],))


@dataclass(frozen=True)
class Forum:
    """The queries of a forum, its other questions, and the indices of each query's duplicates among them."""

    queries: Sequence[str]
    documents: Sequence[str]
    relevant: Sequence[Sequence[int]]


def cqadupstack(origin: SetSource, names: Iterable[str] = FORUMS) -> Task:
    """Build the task of searching for duplicates in each of the forums."""
    forums = [_hub_forum(name) if origin.folder is None else _forum(name, origin) for name in names]
    source = "mteb/cqadupstack-*" if origin.folder is None else str(origin.folder / "domain" / "CQADupStack")

    def score(lookup: Lookup) -> Scores:
        ranks = [ranks_of(lookup(forum.queries), lookup(forum.documents), forum.relevant) for forum in forums]
        groups = np.repeat(np.arange(len(forums)), [len(of_forum) for of_forum in ranks])
        rankings = [of_query for of_forum in ranks for of_query in of_forum]
        return {
            "map@100": Score("mean", np.array([[useb_precision(of_query)] for of_query in rankings]), groups),
            "map-cut-100": Score("mean", np.array([[trec_precision(of_query)] for of_query in rankings]), groups),
        }

    return Task(
        "CQADupStack",
        "map@100",
        {"symmetric": [text for forum in forums for text in (*forum.queries, *forum.documents)]},
        score,
        source,
        Rows({"forums": [vars(forum) for forum in forums]}, source).sha256,
        TaskSettings(others={"task": "search", "cutoff": CUTOFF}),
        (HUB_NOTES["CQADupStack"],) if origin.folder is None else (),
    )


def useb_precision(ranks: npt.NDArray[np.int64]) -> float:
    """Compute USEB's average precision of the first 100 documents: the mean over the relevant ones among them."""
    inside = ranks[ranks <= CUTOFF]
    return float(np.mean(np.arange(1, len(inside) + 1) / inside)) if len(inside) else 0.0


def trec_precision(ranks: npt.NDArray[np.int64]) -> float:
    """Compute `map_cut_100` of trec_eval: the mean over all relevant documents, with 0 beyond rank 100."""
    inside = ranks[ranks <= CUTOFF]
    return float(np.sum(np.arange(1, len(inside) + 1) / inside)) / len(ranks)


def _forum(name: str, origin: SetSource) -> Forum:
    def part(kind: str) -> SetPart:
        return SetPart(f"CQADupStack {name}", None, (f"domain/CQADupStack/{name}.{kind}",))

    queries, documents = (
        _by_id(read_part(part(kind), origin, Shape.TEXTS, keep=["id"])) for kind in ("queries", "documents")
    )
    relevant = read_part(part("relevant"), origin, Shape.PAIRS)
    return _joined(relevant.source, queries, documents, [*zip(relevant["anchor"], relevant["positive"], strict=True)])


def _by_id(rows: Rows) -> dict[str, str]:
    ids = rows.columns.get("id", ())
    if len(set(ids)) != len(rows):
        problem = "an id appears twice" if ids else "there is no column id"
        raise InputError(rows.source, problem, "the columns id and text, each id once", "correct the file")
    return dict(zip(ids, rows["text"], strict=True))


def _hub_forum(name: str) -> Forum:
    hub = FORUMS[name]
    queries, documents, right = _hub_search(f"CQADupStack {name}", hub)
    return _joined(hub, queries, documents, sorted(right))


def _joined(
    where: str, queries: Mapping[str, str], documents: Mapping[str, str], pairs: Sequence[tuple[str, str]]
) -> Forum:
    """Join texts and judgements; queries are not documents, or they would find themselves. All have a relevant one."""
    others = {number: text for number, text in documents.items() if number not in queries}
    _check_ids(where, pairs, queries, others)
    place = {number: at for at, number in enumerate(others)}
    right: dict[str, set[int]] = {}
    for query, document in pairs:
        right.setdefault(query, set()).add(place[document])
    asked = [query for query in queries if query in right]
    return Forum([queries[query] for query in asked], [*others.values()], [sorted(right[query]) for query in asked])


def _check_ids(
    where: str, pairs: Sequence[tuple[str, str]], queries: Mapping[str, str], documents: Mapping[str, str]
) -> None:
    for query, document in pairs:
        if query not in queries or document not in documents:
            problem = f"there is no query {query!r} or no document {document!r}"
            expected = "ids of a query and of a document that is not a query"
            raise InputError(where, problem, expected, "correct the file")


def _hub_search(part: str, hub: str) -> tuple[dict[str, str], dict[str, str], set[tuple[str, str]]]:
    """Read queries and documents by id, and the set of relevant pairs of ids."""
    texts = [hub_texts(part, [hub.format(kind, "test"), hub.format(kind, kind)]) for kind in ("queries", "corpus")]
    judged = [hub.format("default", "test"), hub.format("qrels", "test")]
    columns = hub_columns(part, judged, ["query-id"], ["corpus-id"], ["score"])
    right = {(str(query), str(document)) for query, document, score in zip(*columns, strict=True) if score > 0}
    return texts[0], texts[1], right


LOADERS: Mapping[str, Callable[[SetSource], Task]] = {
    ASKUBUNTU.name: _askubuntu,
    "CQADupStack": cqadupstack,
    TWITTER_URL.name: lambda origin: _twitter(TWITTER_URL, origin),
    PIT.name: lambda origin: _twitter(PIT, origin),
    BIOSSES.name: _biosses,
}


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the sets."""
    return LOADERS[name](origin)


DOMAIN = Suite("domain", tuple(LOADERS), load, TABLE.means)


def hub_columns(part: str, names: Sequence[str], *columns: Sequence[str]) -> list[list[Any]]:
    """Read columns of a table on the hub; the first existing name of the table and of each column is used.

    `part` is its name in messages. A table that cannot be downloaded is missing; one with other columns is refused.
    """
    table = _first(part, names)
    chosen = [next((name for name in choices if name in table.column_names), None) for choices in columns]
    if None in chosen:
        expected = "; ".join("|".join(choices) for choices in columns)
        problem = f"the columns are {', '.join(table.column_names)}"
        raise InputError(names[0], problem, expected, "give a data folder")
    return [table.column(name).to_pylist() for name in chosen]


def hub_texts(part: str, names: Sequence[str]) -> dict[str, str]:
    """Read the title (or the text, if there is no title) of each query or document by id."""
    numbers, titles, texts = hub_columns(part, names, ("_id", "id"), ("title", "text"), ("text",))
    return {str(number): title or text for number, title, text in zip(numbers, titles, texts, strict=True)}


def _first(part: str, names: Sequence[str]) -> pa.Table:
    for name in names:
        try:
            return _table(find_inputs(name)[0].paths)
        except (InputError, MissingPart) as error:
            reason = error
    fix = f"give a data folder: {option('data', 'DIR')}; or {reason.fix}"
    raise MissingPart(part, reason.problem, f"the set {names[0]} on the hub", fix) from reason


def _table(paths: Sequence[Path]) -> pa.Table:
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            tables.append(stream.read_all())
    return pa.concat_tables(tables)
