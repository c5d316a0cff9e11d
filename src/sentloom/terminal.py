"""Print untrusted text, such as data and file names, literally, so that it cannot control the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

OUTPUT_CLOSED = 141  # exit code, as in shells: 128 + the number of SIGPIPE
# Control characters become their Unicode pictures, such as U+241B for ESC; others and lone surrogates become U+FFFD.
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
PICTURES |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def printable(text: str) -> str:
    """Replace control characters, except line feeds and tabs."""
    return text.translate(PICTURES)


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
