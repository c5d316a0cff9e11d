"""Markdown out of text that others wrote: it shows what it is and means nothing, neither as Markdown nor as HTML."""

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([\\`*_\[\]<#|~$&]|^>)")  # > only starts a quotation


def plain(text: str) -> str:
    """Any text on one line, meaning nothing but itself."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split())).replace(r"\<", "&lt;")


def fenced(text: str, language: str = "") -> str:
    """A block of code, fenced by more backticks than it has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table whose first columns are words and whose others are numbers; cells are escaped."""
    return raw_table([*map(plain, head)], ([*map(plain, row)] for row in rows), words)


def raw_table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """The same of cells that are Markdown already."""
    ruler = "|".join("---" if place < words else "---:" for place in range(len(head)))
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])
