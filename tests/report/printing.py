"""What the terminal shows."""

from rich.console import Console


def printed(part, width=300):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(part)
    return capture.get()
