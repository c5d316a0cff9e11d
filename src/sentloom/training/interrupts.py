"""Ctrl-C ends a run at the end of a step, where its state can be saved."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
