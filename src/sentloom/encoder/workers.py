"""Workers that take packs: on a CPU, one thread a pack beats all threads on one pack."""

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch

MOST_WORKERS = 16  # beyond that, Python's own lock is the limit


class _Threads:
    """torch's number of threads belongs to the process: the first call lowers it, the last one puts it back."""

    def __init__(self) -> None:
        self._lock, self._calls, self.before = threading.Lock(), 0, 0

    def enter(self) -> None:
        with self._lock:
            if not self._calls:
                self.before = torch.get_num_threads()
                torch.set_num_threads(max(1, self.before // MOST_WORKERS))
            self._calls += 1

    def leave(self) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls:
                torch.set_num_threads(self.before)


_THREADS = _Threads()


@contextmanager
def pack_workers(device: torch.device) -> Iterator[Executor]:
    """An executor with one worker a thread on a CPU, and a single one elsewhere."""
    if device.type != "cpu":
        single = ThreadPoolExecutor(1)
        try:
            yield single
        finally:
            single.shutdown(cancel_futures=True)
        return
    _THREADS.enter()
    each = max(1, _THREADS.before // MOST_WORKERS)
    executor = ThreadPoolExecutor(
        min(_THREADS.before, MOST_WORKERS), initializer=torch.set_num_threads, initargs=(each,)
    )
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the packs still queued
        _THREADS.leave()
