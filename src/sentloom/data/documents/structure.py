"""Pairs that the structure of documents gives: title and opening, heading and section, link text and target.

Nobody wrote them as questions and answers: each row says what it was mined from, in the column `mined`. Pairs that
teach nothing are left out and counted: a title that its passage repeats, the name of a file, "click here".
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

import pyarrow as pa

from sentloom.data.dataset import FILE, LINE, Dataset, scratch_table
from sentloom.data.documents.passages import BETWEEN_HEADINGS
from sentloom.data.documents.rows import links_of
from sentloom.data.shapes import Shape

MINED, DOCUMENT = "mined", "docid"  # columns: what a pair was mined from, and the document that its passage is in
TITLE, HEADING, LINK = "title", "heading", "link"
PAIRS = "titles, headings and links"  # what the rows are called
USED = {"anchor": "heading", "positive": "passage"}  # what the columns are called in messages
COLUMNS = ("text", "title", "section", "document", "links", "anchors")
PER_SECTION = 2  # passages that a heading is paired with: later ones are often about details
LEAST_WORDS, LEAST_LETTERS = 2, 6  # of a title, a heading or a link; less says little
SHORTEST = 40  # characters of a passage
GENERIC = re.compile(
    r"(click |see |read |more )?(here|this|more|this (page|section|link|document)|next|previous|back|top|home|index)|"
    r"contents?|table of contents|details|link|hier|mehr|weiter|zurück|siehe (hier|oben|unten)|\[?\d+\]?|"
    r"notes?|caution|warnings?|tip|important|hint|hinweis|achtung|"
    r"(section|chapter|part|table|figure|example|appendix|abschnitt|kapitel|tabelle|abbildung)\W+[\dA-Z][\d.]*",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"^[-–•*]\s+|^(?:(?:chapter|appendix|part)\s+)?(?:\d+|[A-Z]|[IVX]+)(?:\.\d+)*\.?\s+(?=\S)", re.IGNORECASE
)
ADDRESS = re.compile(r"\w+://|^[\w.-]+/[\w./-]+$|\.(html?|md|pdf|txt|docx)$", re.IGNORECASE)
WORD = re.compile(r"\w+")

LEAKED = "titles, headings and links that their passage begins with, or that name a file"
TOO_LITTLE = "titles, headings and links that say too little"
SCHEMA = pa.schema(
    [
        *((name, pa.large_string()) for name in ("anchor", "positive", MINED, DOCUMENT)),
        (FILE, pa.int32()),
        (LINE, pa.int64()),
    ]
)


class Pair(NamedTuple):
    """A heading, or what stands for one, and a passage."""

    anchor: str
    row: int  # of the passage
    mined: str


def structure_pairs(data: Dataset) -> Dataset:
    """Passages of documents as pairs of a heading and its passage; passages that nothing leads to are left out."""
    columns = {name: [str(cell) for cell in data.column(name).to_pylist()] for name in COLUMNS}
    skipped = Counter[str]()
    pairs = list(_sound(_pairs(columns), columns, skipped))
    rows = [pair.row for pair in pairs]
    cells = {
        "anchor": [pair.anchor for pair in pairs],
        "positive": [columns["text"][row] for row in rows],
        MINED: [pair.mined for pair in pairs],
        DOCUMENT: [columns["document"][row] for row in rows],
    }
    origin = {name: data.table.column(name).to_numpy()[rows] if rows else [] for name in (FILE, LINE)}
    table = scratch_table(SCHEMA, [pa.record_batch({**cells, **origin}, SCHEMA)])
    mined = data.derive(table, PAIRS, Shape.PAIRS)
    return replace(mined, used=USED, ignored=(), skipped=dict(skipped), notes=(), left_out=0, irregular=(), unread=())


def is_mined(data: Dataset) -> bool:
    """Whether rows are pairs that the structure of documents gave."""
    return data.shape is Shape.PAIRS and MINED in data.table.column_names


def _pairs(columns: Mapping[str, Sequence[str]]) -> Iterator[Pair]:
    """Every title, heading and link with the passages that it leads to."""
    openings, sections = _first_rows(columns)
    yield from (Pair(columns["title"][row], row, TITLE) for row in openings.values() if columns["title"][row])
    repeated = Counter(section.rpartition(BETWEEN_HEADINGS)[2].casefold() for _, section in sections)
    for (_, section), rows in sections.items():
        heading = section.rpartition(BETWEEN_HEADINGS)[2]
        if heading and not GENERIC.fullmatch(heading):
            for row in rows[:PER_SECTION]:
                yield Pair(_in_context(heading, columns["title"][row], repeated), row, HEADING)
    places = {_slug(document, section): rows[0] for (document, section), rows in sections.items()}
    for row, (document, anchors) in enumerate(zip(columns["document"], columns["anchors"], strict=True)):
        places.update({(document, name.casefold()): row for name in anchors.split()})
    for links in columns["links"]:
        for text, target in links_of(links):
            document, _, place = target.partition("#")
            target_row = places.get((document, place.casefold())) if place else openings.get(document)
            if target_row is not None:
                yield Pair(text, target_row, LINK)


def _first_rows(columns: Mapping[str, Sequence[str]]) -> tuple[dict[str, int], dict[tuple[str, str], list[int]]]:
    """The first passage of every document, and the passages of every section."""
    openings: dict[str, int] = {}
    sections: dict[tuple[str, str], list[int]] = {}
    for row, (document, section) in enumerate(zip(columns["document"], columns["section"], strict=True)):
        openings.setdefault(document, row)
        sections.setdefault((document, section), []).append(row)
    return openings, sections


def _in_context(heading: str, title: str, repeated: Mapping[str, int]) -> str:
    """A heading as it can be understood alone: with the title of its document, if others have the same one."""
    alone = repeated[heading.casefold()] == 1 and len(WORD.findall(heading)) >= LEAST_WORDS
    return heading if alone or not title else f"{title}: {NUMBER.sub('', heading)}"


def _slug(document: str, section: str) -> tuple[str, str]:
    """The name that links to a section have: "Getting started" is getting-started."""
    heading = section.rpartition(BETWEEN_HEADINGS)[2]
    return document, "-".join(WORD.findall(heading.casefold()))


def _sound(pairs: Iterator[Pair], columns: Mapping[str, Sequence[str]], skipped: Counter[str]) -> Iterator[Pair]:
    """Pairs that can teach something; the others are counted."""
    for pair in pairs:
        anchor = NUMBER.sub("", " ".join(pair.anchor.split()))
        text, document = columns["text"][pair.row], columns["document"][pair.row]
        if len(text) < SHORTEST or _says_little(anchor):
            skipped[TOO_LITTLE] += 1
        elif _is_repeated(anchor, text) or _names_file(anchor, document):
            skipped[LEAKED] += 1
        else:
            yield pair._replace(anchor=anchor)


def _says_little(anchor: str) -> bool:
    letters = sum(map(str.isalpha, anchor))
    return letters < LEAST_LETTERS or len(WORD.findall(anchor)) < LEAST_WORDS or GENERIC.fullmatch(anchor) is not None


def _is_repeated(anchor: str, text: str) -> bool:
    """Whether a passage begins with its heading, word for word: finding it needs no understanding."""
    words = WORD.findall(anchor.casefold())
    return WORD.findall(text.casefold()[: 2 * len(anchor) + SHORTEST])[: len(words)] == words


def _names_file(anchor: str, document: str) -> bool:
    own = PurePosixPath(document).stem.casefold()
    return ADDRESS.search(anchor) is not None or "".join(WORD.findall(anchor.casefold())) == "".join(WORD.findall(own))
