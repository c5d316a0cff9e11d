"""Folders in the form of BEIR: a corpus, queries, and judgements of documents for queries, in splits.

Rows are the judged pairs: the query, the document (its title and its text), and the grade if there are several. The
documents alone are the split `corpus`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sentloom.data.findings import Findings
from sentloom.data.inputs import BEIR, Input, find_inputs
from sentloom.data.json_rows import jsonl_records
from sentloom.data.scan import Digest, text_blocks, text_lines
from sentloom.errors import InputError

CORPUS = "corpus"
TRAIN, VALIDATION, TEST = "train", "dev", "test"
CORPUS_COLUMNS = ("text", "docid")
PAIR_COLUMNS = ("query", "passage", "qid", "docid", "split")
GRADED_COLUMNS = (*PAIR_COLUMNS, "relevance")
ROWS = 4096  # in memory at a time, besides the judged texts
UNKNOWN = "judgements of a query or a document that is not there"
NOT_RELEVANT = "judged documents that are not relevant, where all others have the same grade"
ID = "_id"


class Judgement(NamedTuple):
    """How relevant a document is for a query."""

    query: str
    document: str
    grade: float
    split: str


class Judged:
    """The rows of a folder, or of one of its splits."""

    def __init__(self, entry: Input, findings: Findings) -> None:
        self._corpus, self._queries = entry.paths[:2]
        self._findings = findings
        self._digests: dict[Path, Digest] = {}
        self._only_corpus = entry.how.split == CORPUS
        self._judgements = [] if self._only_corpus else [*self._all_judgements(entry)]
        self.graded = len({row.grade for row in self._judgements if row.grade > 0}) > 1
        self.names = CORPUS_COLUMNS if self._only_corpus else GRADED_COLUMNS if self.graded else PAIR_COLUMNS

    @property
    def size(self) -> int:
        """Bytes read so far."""
        return sum(digest.size for digest in self._digests.values())

    def hashes(self) -> list[tuple[str, str]]:
        """The files that were read, and their hashes."""
        return [(path.name, digest.hexdigest()) for path, digest in self._digests.items()]

    def rows(self) -> Iterator[list[tuple[Any, ...]]]:
        """The rows in the order of the judgements, or of the corpus."""
        rows = self._documents() if self._only_corpus else self._pairs()
        part: list[tuple[Any, ...]] = []
        for row in rows:
            part.append(row)
            if len(part) == ROWS:
                yield part
                part = []
        yield part

    def _pairs(self) -> Iterator[tuple[Any, ...]]:
        asked = {row.query for row in self._judgements}
        wanted = {row.document for row in self._judgements}
        queries = {key: text for text, key in self._texts(self._queries) if key in asked}
        documents = {key: text for text, key in self._texts(self._corpus) if key in wanted}
        for row in self._judgements:
            if row.query not in queries or row.document not in documents:
                self._findings.skipped[UNKNOWN] += 1
            elif row.grade <= 0 and not self.graded:
                self._findings.skipped[NOT_RELEVANT] += 1
            else:
                cells = (queries[row.query], documents[row.document], row.query, row.document, row.split)
                yield (*cells, row.grade) if self.graded else cells

    def _documents(self) -> Iterator[tuple[Any, ...]]:
        yield from self._texts(self._corpus)

    def _texts(self, path: Path) -> Iterator[tuple[str, str]]:
        """The texts of a file and their names; a title is a part of the text."""
        digest = self._digests[path] = Digest()
        with self._findings.within(str(path)):
            for _, objects in jsonl_records(text_blocks(path, digest, self._findings), self._findings):
                for row in objects:
                    text = " ".join(filter(None, (row.get("title"), row.get("text"))))
                    yield text, str(row.get(ID, ""))

    def _all_judgements(self, entry: Input) -> Iterator[Judgement]:
        files = splits_in(entry)
        chosen = files if entry.how.split is None else {entry.how.split: files.get(entry.how.split)}
        for split, path in chosen.items():
            if path is None:
                problem = f"there is no split {split!r}"
                raise InputError(entry.name, problem, f"one of {', '.join([*files, CORPUS])}", "correct the name")
            yield from self._judged(split, path)

    def _judged(self, split: str, path: Path) -> Iterator[Judgement]:
        digest = self._digests[path] = Digest()
        with self._findings.within(str(path)):
            for numbers, lines in text_lines(text_blocks(path, digest, self._findings), self._findings):
                for number, line in zip(numbers, lines, strict=True):
                    cells = line.split("\t")
                    if (grade := _number(cells[-1])) is not None and len(cells) in (3, 4):  # TREC has four columns
                        yield Judgement(cells[0], cells[-2], grade, split)
                    elif number > 1:
                        kind = "judgements that cannot be read"
                        expected = "a query, a document and a number, with tabs between them"
                        self._findings.problem(number, f"found {line[:60]!r}", expected, kind)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def splits_of(name: str) -> Mapping[str, Path]:
    """The splits of a folder with judgements; none for other data."""
    inputs = find_inputs(name) if Path(name).is_dir() else []
    return splits_in(inputs[0]) if [entry.kind for entry in inputs] == [BEIR] else {}


def splits_in(entry: Input) -> dict[str, Path]:
    """The files of judgements by split, those to train on first."""
    files = sorted(entry.paths[2:], key=lambda path: (path.stem != TRAIN, path.stem == TEST, path.stem))
    return {path.stem: path for path in files}
