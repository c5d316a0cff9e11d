"""Printing: what comes from data or file names is shown as it is, and cannot steer the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

OUTPUT_CLOSED = 141  # exit code, as shells have it: 128 and the number of SIGPIPE
# Control characters as their pictures: U+241B for ESC. Those above ASCII and lone surrogates have none.
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
PICTURES |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def printable(text: str) -> str:
    """Text without control characters, but for line ends and tabs."""
    return text.translate(PICTURES)


class Terminal(Console):
    """A console without markup, emoji codes and highlighting, on which control characters are shown as pictures."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as it is printed, so that its width is measured with the pictures."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of what is printed; those that rich itself makes to steer the terminal stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    def on_broken_pipe(self) -> None:
        """Nobody reads the output any more, as with `| head`: end quietly, and with no exit code of our own."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(OUTPUT_CLOSED) from None
