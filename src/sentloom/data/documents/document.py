"""What every format is read into: headings and paragraphs in order, with their pages and links."""

from typing import NamedTuple

PARAGRAPH = 0  # the level of a block that is no heading


class Link(NamedTuple):
    """A link in a paragraph."""

    text: str
    target: str  # as it is written in the file


class Block(NamedTuple):
    """A heading or a paragraph."""

    text: str
    level: int = PARAGRAPH  # of a heading, from 1
    page: int = 0  # from 1, of formats that have pages
    links: tuple[Link, ...] = ()
    anchors: tuple[str, ...] = ()  # names that links to it have


class Document(NamedTuple):
    """A document: its title and its blocks in order."""

    title: str
    blocks: tuple[Block, ...]
    apart: bool = False  # every block is a passage, as every line of a file of sentences


class Unreadable(Exception):
    """A file is not read; the text says why, as it is counted: "encrypted", "without text"."""


def titled(title: str, blocks: list[Block]) -> Document:
    """A document whose title is its first heading of the highest level, if it begins with one, or else `title`.

    The title is then no heading of a section: every passage would be under it.
    """
    first = next((block for block in blocks[:3] if block.level), None)
    highest = min((block.level for block in blocks if block.level), default=0)
    if first is None or first.level > highest:
        return Document(title, tuple(blocks))
    alone = sum(block.level == highest for block in blocks) == 1
    others = [block for block in blocks if block is not first] if alone else blocks
    return Document(first.text if alone or not title else title, tuple(others))
