"""Ctrl-C ends a run at the end of a step, where its state can be saved; what happens is said at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STDERR = 2
SAVING = "Stopping: a checkpoint is saved after this step. Ctrl-C again stops at once, without it."
STOPPING = "Stopping ..."


def say_at_once(text: str) -> None:
    """Write a line to standard error from within a signal handler, where no buffered stream may be used."""
    with suppress(OSError):
        os.write(STDERR, f"\n{text}\n".encode())


def announce_interrupts() -> None:
    """Have Ctrl-C say so at once: what is under way may take a moment to end."""

    def stop(number: int, frame: FrameType | None) -> None:
        say_at_once(STOPPING)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a job in the background ignores Ctrl-C
        signal.signal(signal.SIGINT, stop)


@contextmanager
def stop_asked() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether the user pressed Ctrl-C; pressed a second time, it interrupts at once."""
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
        say_at_once(SAVING)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
