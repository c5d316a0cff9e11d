"""Documents as rows: a passage each, with its title, the headings above it, its document, page and links."""

import hashlib
import json
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from sentloom.data.documents.folder import Unread
from sentloom.data.documents.workers import Answer, read_documents

COLUMNS = ("text", "title", "section", "document", "page", "links", "anchors")
ROWS = 4096  # in memory at a time, besides those of one document
SHOWN_EVERY = 1.0  # seconds, so that progress is seen however slowly a file is read
# What a link may leave out of the name of its target, or write for it.
ENDINGS = ("", ".md", ".html", "/index.md", "/index.html", "/README.md")


class Rows(NamedTuple):
    """Some passages."""

    places: list[int]  # the number of each in its document, from 1
    files: list[int]  # the number of its document among the paths
    rows: list[tuple[str, ...]]  # the cells of COLUMNS


class Documents:
    """The documents of a folder, or one document, as they are read."""

    def __init__(self, folder: Path, paths: Sequence[Path], encoding: str | None) -> None:
        self.size = 0  # bytes read so far
        self.unread: list[Unread] = []
        self._paths, self._encoding = paths, encoding
        self._names = [path.relative_to(folder).as_posix() for path in paths]
        self._known = frozenset(self._names)
        self._digest = hashlib.sha256()

    def sha256(self) -> str:
        """The hash of the names and contents of all files."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[Rows]:
        """The passages of all documents, in order; at least every second there is a part, which may be empty."""
        part, due = Rows([], [], []), monotonic() + SHOWN_EVERY
        for number, answer in enumerate(read_documents(self._paths, self._encoding)):
            self.size += answer.get("bytes", 0)
            self._digest.update(f"{answer.get('sha256', answer.get('why'))}  {self._names[number]}\n".encode())
            if why := answer.get("why"):
                self.unread.append(Unread(str(self._paths[number]), why))
            self._add(part, number, answer)
            if len(part.rows) >= ROWS or monotonic() >= due:
                yield part
                part, due = Rows([], [], []), monotonic() + SHOWN_EVERY
        yield part

    def _add(self, part: Rows, number: int, answer: Answer) -> None:
        name = self._names[number]
        for place, (text, section, page, links, anchors) in enumerate(answer.get("passages", ()), 1):
            part.places.append(place)
            part.files.append(number)
            known = [[said, target] for said, to in links if (target := self._target(name, to))]
            cells = (
                text,
                answer["title"],
                section,
                name,
                str(page or ""),
                json.dumps(known) if known else "",
                " ".join(anchors),
            )
            part.rows.append(cells)

    def _target(self, name: str, target: str) -> str:
        """The document, and the place in it, that a link leads to; "" if it leads out of the folder."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return ""
        if parts.scheme or parts.netloc or not parts.path:
            return ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))).lstrip("/")
        stems = (path, posixpath.splitext(path)[0])
        document = next((own for stem in stems for end in ENDINGS if (own := stem + end) in self._known), "")
        place = f"#{parts.fragment}" if parts.fragment else ""
        return "" if document in ("", name) else f"{document}{place}"


def links_of(cell: str) -> list[tuple[str, str]]:
    """The links in a cell of the column `links`: text, and document with or without a place in it."""
    found: list[Any] = json.loads(cell) if cell else []
    return [(text, target) for text, target in found]
