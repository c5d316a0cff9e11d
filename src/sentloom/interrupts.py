"""Handle Ctrl-C: a run stops at the end of a step, where it can be saved, and prints at once what will happen."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STDERR = 2
SAVING = "Stopping: a checkpoint is saved after this step. Press Ctrl-C again to stop now without saving."
STOPPING = "Stopping ..."


def print_at_once(text: str) -> None:
    """Write a line to standard error from a signal handler, where buffered streams must not be used."""
    with suppress(OSError):
        os.write(STDERR, f"\n{text}\n".encode())


def announce_interrupts() -> None:
    """Print a message on Ctrl-C at once, since the current work may take a moment to stop."""

    def stop(number: int, frame: FrameType | None) -> None:
        print_at_once(STOPPING)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # background jobs ignore Ctrl-C
        signal.signal(signal.SIGINT, stop)


@contextmanager
def stop_asked() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether the user pressed Ctrl-C; a second Ctrl-C interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = False
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print_at_once(SAVING)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
