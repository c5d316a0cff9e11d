"""Worker threads for packs: on a CPU, one thread per pack is faster than all threads on one pack."""

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch

MOST_WORKERS = 16  # beyond that, the GIL is the limit


class _Threads:
    """Lowers torch's global number of threads on the first call and restores it after the last one."""

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


def worker_count(device: torch.device) -> int:
    """How many packs run at the same time: one per thread on a CPU, a single one elsewhere."""
    return min(torch.get_num_threads(), MOST_WORKERS) if device.type == "cpu" else 1


@contextmanager
def pack_workers(device: torch.device) -> Iterator[Executor]:
    """Yield an executor with `worker_count` workers."""
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
        executor.shutdown(cancel_futures=True)  # Ctrl-C does not wait for queued packs
        _THREADS.leave()


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Restore torch's number of threads in the end: CTranslate2 sets it to its own when it opens a model."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
