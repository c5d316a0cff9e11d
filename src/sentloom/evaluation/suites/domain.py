"""Special domains, as the USEB benchmark scores them, with BIOSSES beside it as GenSE has it.

AskUbuntu ranks 20 candidates a question (MAP). CQADupStack searches duplicates in each of 12 forums (MAP@100, mean over
the forums). Twitter-URL and PIT-2015 tell paraphrases of tweets from others (average precision); pairs with a vote of
3, where people were at odds, are dropped. BIOSSES is the correlation with the scores of 100 pairs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.suites.hub_tables import hub_columns, hub_texts
from sentloom.evaluation.suites.pairs import correlation_task, detection_task, ranking_task
from sentloom.evaluation.suites.set_source import Rows, SetPart, SetSource, check, read_part
from sentloom.evaluation.suites.set_tables import read_table
from sentloom.evaluation.task import Lookup, Score, Scores, Suite, Task

CUTOFF = 100
UNDECIDED = 3  # of the grades 0 to 5 (PIT-2015) or of 6 votes (Twitter-URL): more is a paraphrase, less is none
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
    """Every candidate of every query, right or not: the hub keeps texts, candidates and judgements apart."""
    name, hub = ASKUBUNTU.name, ASKUBUNTU.hub
    queries, documents, right = _hub_search(name, hub)
    numbers, ranked = hub_columns(name, [hub.format("top_ranked", "test")], ["query-id"], ["corpus-ids"])
    pairs = [(str(query), str(one)) for query, ones in zip(numbers, ranked, strict=True) for one in ones]
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
    """Labels 0 and 1 for graded votes; pairs that are labelled so already stay as they are."""
    votes = np.asarray(rows["score"], np.float64)
    if votes.max() <= 1:
        return rows
    decided = votes != UNDECIDED
    columns: dict[str, list[Any]] = {side: [*compress(rows[side], decided)] for side in ("sentence1", "sentence2")}
    return Rows({**columns, "score": [float(vote > UNDECIDED) for vote in votes[decided]]}, rows.source, rows.notes)


def _hub_pairs(part: SetPart) -> Rows:
    """Pairs in either form of the hub: a pair a row, or one row with three lists."""
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
    """The queries of a forum, its other questions, and for each query the numbers of its duplicates among them."""

    queries: Sequence[str]
    documents: Sequence[str]
    relevant: Sequence[Sequence[int]]


def _cqadupstack(origin: SetSource) -> Task:
    forums = [_hub_forum(name) if origin.folder is None else _forum(name, origin) for name in FORUMS]
    source = "mteb/cqadupstack-*" if origin.folder is None else str(origin.folder / "domain" / "CQADupStack")

    def score(lookup: Lookup) -> Scores:
        ranks = [ranks_of(lookup(forum.queries), lookup(forum.documents), forum.relevant) for forum in forums]
        groups = np.repeat(np.arange(len(forums)), [len(found) for found in ranks])
        found = [one for some in ranks for one in some]
        return {
            "map@100": Score("mean", np.array([[useb_precision(one)] for one in found]), groups),
            "map-cut-100": Score("mean", np.array([[trec_precision(one)] for one in found]), groups),
        }

    return Task(
        "CQADupStack",
        "map@100",
        {"symmetric": [text for forum in forums for text in (*forum.queries, *forum.documents)]},
        score,
        source,
        Rows({"forums": [vars(forum) for forum in forums]}, source).sha256,
        {"task": "search", "cutoff": CUTOFF},
        (HUB_NOTES["CQADupStack"],) if origin.folder is None else (),
    )


def useb_precision(ranks: npt.NDArray[np.int64]) -> float:
    """USEB's average precision of the first 100 documents: the mean over the right ones that are among them."""
    inside = ranks[ranks <= CUTOFF]
    return float(np.mean(np.arange(1, len(inside) + 1) / inside)) if len(inside) else 0.0


def trec_precision(ranks: npt.NDArray[np.int64]) -> float:
    """`map_cut_100` of trec_eval: the same sum over all right documents, so that those further down count as 0."""
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
        found = "an id twice" if ids else "no column id"
        raise InputError(rows.source, found, "the columns id and text, each id once", "correct the file")
    return dict(zip(ids, rows["text"], strict=True))


def _hub_forum(name: str) -> Forum:
    hub = FORUMS[name]
    queries, documents, right = _hub_search(f"CQADupStack {name}", hub)
    return _joined(hub, queries, documents, sorted(right))


def _joined(
    where: str, queries: Mapping[str, str], documents: Mapping[str, str], pairs: Sequence[tuple[str, str]]
) -> Forum:
    """Texts and judgements as a forum. A query is no document, since it would find itself; each has a right one."""
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
            found = f"query {query!r} with document {document!r}"
            raise InputError(where, found, "ids of a query and of a document that is no query", "correct the file")


def _hub_search(part: str, hub: str) -> tuple[dict[str, str], dict[str, str], set[tuple[str, str]]]:
    """Queries and documents by their ids, and the pairs of ids that belong together."""
    texts = [hub_texts(part, [hub.format(kind, "test"), hub.format(kind, kind)]) for kind in ("queries", "corpus")]
    judged = [hub.format("default", "test"), hub.format("qrels", "test")]
    columns = hub_columns(part, judged, ["query-id"], ["corpus-id"], ["score"])
    right = {(str(query), str(document)) for query, document, score in zip(*columns, strict=True) if score > 0}
    return texts[0], texts[1], right


LOADERS: Mapping[str, Callable[[SetSource], Task]] = {
    ASKUBUNTU.name: _askubuntu,
    "CQADupStack": _cqadupstack,
    TWITTER_URL.name: lambda origin: _twitter(TWITTER_URL, origin),
    PIT.name: lambda origin: _twitter(PIT, origin),
    BIOSSES.name: _biosses,
}


def load(name: str, origin: SetSource) -> Task:
    """The task of one of the sets."""
    if name not in LOADERS:
        raise InputError("domain set", repr(name), f"one of {', '.join(LOADERS)}", "name one of these")
    return LOADERS[name](origin)


DOMAIN = Suite("domain", tuple(LOADERS), load, TABLE.means)
