"""Plain text: whether its lines are sentences or the wrapped lines of a document, and its headings and paragraphs."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from sentloom.data.documents.document import Block, Document, titled

NARROWEST, WIDEST = 30, 120  # characters of wrapped lines
LEAST_LINES = 3  # that another one follows in the same paragraph
NEARLY = 0.85  # of the width: a line that the next word would not have fitted on is full
# Shares of the lines that another one follows. Of lines that are a sentence each, about 0.2 happen to be full.
FULL, CONTINUED = 0.4, 0.65  # full; full, and followed by a small letter, added up
ENDED = 0.5  # that end with a sentence: of wrapped text, about 0.15 do
ENDS = re.compile(r"[.!?:;][\"')\]]*$")
NUMBERED = re.compile(
    r"(?:(?:chapter|section|appendix|article)\s+)?(\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[IVX]+)[.):]?\s+\S", re.IGNORECASE
)
RULE = re.compile(r"([=\-~^*#+])\1{2,}\s*$")
LONGEST_HEADING = 80
BULLET = re.compile(r"\s*(?:[-*+•o]|\(?[a-z0-9]{1,2}[.)])\s+")
DIGITS = re.compile(r"\d+")
LETTERS = re.compile(r"[^\W\d_]{2}")
CONTENTS = re.compile(r"\.{4,}|(?:\. ){4,}")  # the dots of a table of contents
FEWEST_PAGES = 3  # of a text whose lines at the edges of pages are compared
EDGE_SHARE = 0.5  # of the pages have a line that belongs to the page and not to the text
HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n\s*(?=[a-zäöüß])")


def is_wrapped(text: str) -> bool:
    """Whether the lines of a text are those of wrapped paragraphs, and not a text each."""
    lines = [line.expandtabs().rstrip() for line in text.rstrip().split("\n")]
    with_words = [line if LETTERS.search(line) else "" for line in lines]
    followed = [(line, after.lstrip()) for line, after in pairwise(with_words) if line and after]
    if len(followed) < LEAST_LINES or "" not in lines:
        return False
    width = sorted(len(line) for line, _ in followed)[int(0.9 * (len(followed) - 1))]
    full = sum(len(line) + 1 + len(after.split()[0]) >= NEARLY * width for line, after in followed)
    lower = sum(after[0].islower() for _, after in followed)
    ended = sum(ENDS.search(line) is not None for line, _ in followed)
    if ended / len(followed) > ENDED:
        return False
    shares = full / len(followed), (full + lower) / len(followed)
    return NARROWEST <= width <= WIDEST and shares[0] >= FULL and shares[1] >= CONTINUED


def read_plain(text: str) -> Document:
    """Read a text with wrapped lines: paragraphs are between blank lines; form feeds end pages."""
    pages = [page.split("\n") for page in text.replace("\r\n", "\n").split("\f")]
    lines = [line.expandtabs().rstrip() for page in without_edges(pages) for line in page]
    return titled("", [block for lines in _paragraphs(lines) if (block := _block(lines)).text])


def without_edges(pages: Sequence[Sequence[str]]) -> list[list[str]]:
    """Pages without the first and last lines that most of them share but for numbers: running titles, page numbers."""
    kept = [list(page) for page in pages]
    for edge in (0, -1):
        for _ in range(2):
            lines = [next((line for line in page[:: edge or 1] if line.strip()), "") for page in kept]
            counts = Counter(_form(line) for line in lines if line.strip())
            running = {form for form, count in counts.items() if count >= max(FEWEST_PAGES, EDGE_SHARE * len(kept))}
            for page, line in zip(kept, lines, strict=True):
                if _form(line) in running:
                    at = page.index(line) if edge == 0 else len(page) - 1 - page[::-1].index(line)
                    del page[at]
    return kept


def _form(line: str) -> str:
    return DIGITS.sub("0", " ".join(line.split()))


def _paragraphs(lines: Sequence[str]) -> list[list[str]]:
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip() and not (paragraphs[-1] and BULLET.match(line) and ENDS.search(paragraphs[-1][-1])):
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line] if line.strip() else [])
    return [paragraph for paragraph in paragraphs if paragraph]


def _block(lines: Sequence[str]) -> Block:
    overlined = len(lines) == 3 and RULE.match(lines[0].strip()) is not None
    lines = lines[overlined:]
    underlined = len(lines) == 2 and RULE.match(lines[1].strip()) is not None
    text = lines[0].strip() if underlined else joined(lines)
    if not LETTERS.search(text) or CONTENTS.search(text):
        return Block("")
    if underlined:
        return Block(text, 1 if overlined else 2 if "=" in lines[1] else 3)
    return Block(text, _level(lines))


def _level(lines: Sequence[str]) -> int:
    """The level of a heading: a short line that is numbered or in capitals; 0 for a paragraph."""
    text = lines[0].strip()
    if len(lines) > 1 or len(text) > LONGEST_HEADING or ENDS.search(text) or text.endswith(","):
        return 0
    if number := NUMBERED.match(text):
        return 1 + number[1].count(".") if lines[0][0] != " " or "." in number[1] else 0
    return 1 if text.isupper() and len(LETTERS.findall(text)) > 1 else 0


def joined(lines: Sequence[str]) -> str:
    """The lines of a paragraph as one; words that were divided are whole again."""
    return " ".join(HYPHENATED.sub("", "\n".join(lines)).split())
