"""Write untrusted text as Markdown: it is escaped, so that it has no effect as Markdown or HTML."""

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([\\`*_\[\]<#|~$&]|^>)")  # > only matters at the start of a line


def plain(text: str) -> str:
    """Escape any text and put it on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split())).replace(r"\<", "&lt;")


def fenced(text: str, language: str = "") -> str:
    """Return a fenced code block, with a fence longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table with escaped cells; the first `words` columns are text, the others right-aligned numbers."""
    return raw_table([*map(plain, head)], ([*map(plain, row)] for row in rows), words)


def raw_table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return the same table for cells that are already Markdown."""
    ruler = "|".join("---" if place < words else "---:" for place in range(len(head)))
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])
