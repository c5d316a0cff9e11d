"""Divide a document into passages at its headings and paragraphs, each short enough for an encoder to read whole."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sentloom.data.documents.document import Block, Document, Link

# Encoders read 256 tokens or more. A token is about four letters of a word, or one symbol, or one wide character; the
# rest of the room is for languages with longer words than English.
LONGEST = 800  # letters, or symbols and wide characters that count as four
SLACK = 60  # more, rather than a passage of a few words before a long paragraph
SYMBOL = re.compile(
    r"[^\w\s]|_|[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
DIGIT = re.compile(r"\d")
UNUSUAL = re.compile(r"\w{16,}")  # hashes, keys and encoded data, of which a token has two letters
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])")
BETWEEN_HEADINGS = " > "


class Passage(NamedTuple):
    """Some paragraphs under one heading."""

    text: str
    section: str  # the headings above it, from the highest on
    page: int
    links: tuple[Link, ...]
    anchors: tuple[str, ...] = ()  # names that links to it, or to its heading, have


def size(text: str) -> int:
    """The length of a text in letters; what tokenizers give a token of its own counts as more."""
    more = sum(map(len, UNUSUAL.findall(text)))
    return len(text) + 3 * len(SYMBOL.findall(text)) + len(DIGIT.findall(text)) + more


def passages(document: Document) -> list[Passage]:
    """The passages in order. Paragraphs of a section share a passage while they fit; longer ones are divided."""
    if document.apart:
        return [Passage(block.text, "", 0, ()) for block in document.blocks]
    path: list[Block] = []
    done: list[Passage] = []
    open_: list[Block] = []
    anchors: tuple[str, ...] = ()  # of headings whose first passage is to come
    for block in (*document.blocks, None):
        if open_ and (block is None or block.level or block.page != open_[0].page):
            first, *others = _together(open_, path)
            done += [first._replace(anchors=(*anchors, *first.anchors)), *others]
            open_, anchors = [], ()
        if block is not None and block.level:
            path = [*(above for above in path if above.level < block.level), block]
            anchors = (*anchors, *block.anchors)
        elif block is not None:
            open_.append(block)
    return done


def _together(blocks: list[Block], path: list[Block]) -> Iterator[Passage]:
    section = BETWEEN_HEADINGS.join(heading.text for heading in path)
    texts: list[str] = []
    links: list[Link] = []
    anchors: list[str] = []
    room = LONGEST
    for block in blocks:
        for number, part in enumerate(divided(block.text)):
            is_place = number == 0 and block.anchors and room < LONGEST / 2  # what links lead to had better begin one
            if texts and (is_place or size(part) > room + SLACK):
                yield Passage("\n".join(texts), section, blocks[0].page, tuple(links), tuple(anchors))
                texts, links, anchors, room = [], [], [], LONGEST
            texts.append(part)
            links += [link for link in block.links if link.text in part]
            anchors += block.anchors if number == 0 else ()
            room -= size(part) + 1
    yield Passage("\n".join(texts), section, blocks[0].page, tuple(links), tuple(anchors))


def divided(text: str) -> Iterator[str]:
    """A paragraph in parts of at most LONGEST: at lines, else after sentences, else between words, else anywhere."""
    if size(text) <= LONGEST:
        yield text
        return
    for pattern in (re.compile(r"\n"), SENTENCE_END, re.compile(r"\s+")):
        ends = [match.end() for match in pattern.finditer(text)]
        if parts := _cut(text, ends):
            for part in parts:
                yield from divided(part)
            return
    half = max(1, len(text) // 2)
    yield from divided(text[:half])
    yield from divided(text[half:])


def _cut(text: str, ends: list[int]) -> list[str]:
    """The text cut at the border nearest to the end of what fits, and so on; nothing if there is no border."""
    parts, start, last, used = list[str](), 0, 0, 0
    for end in [*ends, len(text)]:
        piece = size(text[last:end])
        if used and used + piece > LONGEST:
            parts.append(text[start:last].strip())
            start, used = last, 0
        used += piece
        last = end
    parts.append(text[start:].strip())
    return [part for part in parts if part] if len(parts) > 1 else []
