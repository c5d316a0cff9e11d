"""Print untrusted text, such as data and file names, literally, so that it cannot control the terminal.

Reports use the same characters, since they are read in terminals too.
"""

import codecs
import json
import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

OUTPUT_CLOSED = 141  # exit code, as in shells: 128 + the number of SIGPIPE
# Control characters become their Unicode pictures, such as U+241B for ESC; others, lone surrogates and characters that
# reverse the direction of what follows become U+FFFD.
REVERSING = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
PICTURES |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *REVERSING], 0xFFFD)
ESCAPES = {code: f"\\u{code:04x}" for code in [*range(0x7F, 0xA0), *REVERSING]}  # json escapes the others itself


def printable(text: str) -> str:
    """Replace control characters, except line feeds and tabs, and characters that reverse the direction of text."""
    return text.translate(PICTURES)


def json_text(values: Any) -> str:
    """Values as indented JSON, in which the same characters are escaped: read again, they are what they were."""
    return json.dumps(values, indent=1, ensure_ascii=False).translate(ESCAPES) + "\n"


def print_any_character() -> None:
    """Print UTF-8 where Python would print only ASCII, unless the user asked for it; "?" where that cannot be."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            chosen = "PYTHONIOENCODING" in os.environ
            stream.reconfigure(encoding="utf-8" if is_ascii and not chosen else None, errors="replace")


class Terminal(Console):
    """A console without markup, emoji codes and highlighting that shows control characters as pictures."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a string with control characters replaced, so that its measured width is right."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render segments with control characters replaced, except in the control segments of rich itself."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    def on_broken_pipe(self) -> None:
        """Exit quietly with the shell's code for SIGPIPE if the reader has closed the output, as with `| head`."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(OUTPUT_CLOSED) from None
