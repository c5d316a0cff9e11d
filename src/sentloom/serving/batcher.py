"""Dynamic batching: texts of many requests share batches of a model, and each request gets its own vectors back.

Nothing here knows HTTP. All state belongs to the event loop, so it needs no lock; only `encode` runs in worker threads.

- A batch has texts of one model, up to a number of tokens, one from each waiting request in turn: a large request is
  split over many batches, and a small one does not wait behind it.
- An idle machine starts at once. While a batch runs, the next one waits until it is full or its oldest text is due.
- The number of requests that wait or run is bounded, and with it the time to an answer: since requests take turns, that
  time is about their number times what one of them costs, whether they are small or large.
- Cancelling the future of a request drops what no batch has taken yet.
"""

import asyncio
import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Tokens: TypeAlias = "array[int]"  # the ids of one text, four bytes each
Encode = Callable[[Sequence[Sequence[int]]], Vectors]  # n texts -> (n, d), in a worker thread
LEAST_SHARE = 256  # tokens: batches are not divided among idle workers below this size
LONGEST_RETRY = 60  # seconds
SMOOTHING = 0.1  # of the measured speed: the weight of the latest batch


class QueueFull(Exception):
    """As many requests as may wait or run; `retry_after` is about how many seconds they take."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("the queue is full")
        self.retry_after = retry_after


class QueueClosed(Exception):
    """The batcher is shutting down and takes no new work."""


class WaitedTooLong(Exception):
    """No batch took any text of a request in time."""


@dataclass(frozen=True)
class BatchLimits:
    """How batches are formed, and how much may wait."""

    batch_tokens: int = 512  # larger batches are hardly faster on a CPU, need more memory, and keep others waiting
    requests: int = 80  # that wait or run: 64 clients are never refused, and at any load wait 1.25 times as long
    batch_wait: float = 0.002  # seconds that a text waits for others to share its batch, while another batch runs
    queue_wait: float = 30.0  # seconds that a request waits for its first batch


class _Work:
    """The texts of one request: those that wait, and the vectors of those that are done."""

    def __init__(self, encode: Encode, ids: Sequence[Tokens], done: "asyncio.Future[Vectors]", arrived: float) -> None:
        self.encode, self.ids, self.done, self.arrived = encode, ids, done, arrived
        self.taken = 0  # texts that a batch has taken
        self.tokens = sum(map(len, ids))  # of the others
        self.missing = len(ids)  # vectors
        self.vectors: Vectors | None = None

    @property
    def next_tokens(self) -> int:
        return len(self.ids[self.taken])

    def take(self) -> int:
        self.tokens -= self.next_tokens
        self.taken += 1
        return self.taken - 1

    def put(self, place: int, vector: Vectors) -> None:
        if self.vectors is None:
            self.vectors = np.empty((len(self.ids), *vector.shape), np.float32)
        self.vectors[place] = vector
        self.missing -= 1
        if not self.missing and not self.done.done():
            self.done.set_result(self.vectors)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


_Batch = list[tuple[_Work, int]]  # of one model: a request and which of its texts


@dataclass
class BatchCounts:
    """What a batcher has done so far, for metrics."""

    batches: int = 0
    texts: int = 0
    tokens: int = 0
    dropped: int = 0  # requests whose client went away before they were done
    seconds: float = 0.0  # of all batches


class Batcher:
    """Runs `encode` on batches in the `workers` threads of an executor."""

    def __init__(
        self,
        executor: Executor,
        workers: int,
        limits: BatchLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits, self.counts = limits or BatchLimits(), BatchCounts()
        self._executor, self._workers, self._clock = executor, workers, clock
        self._waiting: deque[_Work] = deque()
        self.requests = 0  # that wait or run
        self.waiting_tokens = 0
        self.running = 0  # batches
        self._speed = 0.0  # tokens a second of one worker, smoothed; 0: not measured yet
        self._timer: asyncio.Handle | None = None  # of the next call of `_pump`
        self._due = 0.0  # the time of that call
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether a new request would be refused."""
        return self.requests >= self.limits.requests

    @property
    def retry_after(self) -> int:
        """About how many seconds all that waits takes, at least 1."""
        speed = self._speed * self._workers
        return min(LONGEST_RETRY, max(1, math.ceil(self.waiting_tokens / speed))) if speed else 1

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Take a place in the queue for a request whose texts are not tokenised yet.

        Submit them right after this, before the event loop runs anything else: the place is then still free.
        """
        self._check_open()
        self.requests += 1
        try:
            yield
        except asyncio.CancelledError:
            self.counts.dropped += 1
            raise
        finally:
            self.requests -= 1

    def submit(self, encode: Encode, ids: Sequence[Tokens], *, urgent: bool = False) -> "asyncio.Future[Vectors]":
        """Queue the texts of one request and return the future of their vectors (n, d); cancel it to drop them.

        Texts with the same `encode` share batches. Urgent ones, such as health checks, go first and are always taken.
        """
        self._check_open(urgent)
        done: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        work = _Work(encode, ids, done, self._clock())
        done.add_done_callback(partial(self._drop, work))
        self._idle.clear()
        (self._waiting.appendleft if urgent else self._waiting.append)(work)
        self.requests += 1
        self.waiting_tokens += work.tokens
        self._pump_in(0)
        return done

    def _check_open(self, urgent: bool = False) -> None:
        if self._closed:
            raise QueueClosed
        if not urgent and self.is_full:
            raise QueueFull(self.retry_after)

    async def close(self) -> None:
        """Refuse new work, and wait until all that was accepted is done."""
        self._closed = True
        self._pump_in(0)
        await self._idle.wait()

    def _drop(self, work: _Work, done: "asyncio.Future[Vectors]") -> None:
        """Called when a request is done: if its client has gone, forget what still waits."""
        self.counts.dropped += done.cancelled()
        self.requests -= 1
        self._forget(work)
        self._note_idle()

    def _fail(self, work: _Work, error: BaseException) -> None:
        work.fail(error)
        self._forget(work)

    def _forget(self, work: _Work) -> None:
        if work.taken < len(work.ids):
            self._waiting.remove(work)
            self.waiting_tokens -= work.tokens
            work.taken = len(work.ids)

    def _pump_in(self, seconds: float) -> None:
        """Start batches after this time; 0: when the loop has read what has arrived by now."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due, self._timer = due, loop.call_later(seconds, self._pump)

    def _pump(self) -> None:
        """If texts are due, start batches on all idle workers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.refuse_overdue()
        if self._waiting and (early := self._early()):
            self._pump_in(early)
            return
        while self._waiting and self.running < self._workers:
            self._start(self._take())

    def _early(self) -> float:
        """Seconds until the next batch is due; 0 if it is: no other runs, it is full, or its oldest text is due."""
        if not self.running or self._closed or self.waiting_tokens >= self.limits.batch_tokens:
            return 0.0
        oldest = min(work.arrived for work in self._waiting)
        return max(0.0, oldest + self.limits.batch_wait - self._clock())

    def refuse_overdue(self) -> None:
        """Fail the requests that have waited too long for their first batch. Call it now and then."""
        latest = self._clock() - self.limits.queue_wait
        for work in [work for work in self._waiting if not work.taken and work.arrived < latest]:
            self._fail(work, WaitedTooLong())

    def _take(self) -> _Batch:
        """Take texts of one model, one from each of its requests in turn; other models come first next time."""
        encode = self._waiting[0].encode
        same = deque(work for work in self._waiting if work.encode == encode)
        others = [work for work in self._waiting if work.encode != encode]
        batch: _Batch = []
        room = self._share()
        while same and (not batch or same[0].next_tokens <= room):
            work = same.popleft()
            room -= work.next_tokens
            self.waiting_tokens -= work.next_tokens
            batch.append((work, work.take()))
            if work.taken < len(work.ids):
                same.append(work)
        self._waiting = deque([*others, *same])
        return batch

    def _share(self) -> int:
        """Tokens of the next batch: what waits is divided among the idle workers."""
        share = math.ceil(self.waiting_tokens / (self._workers - self.running))
        return min(self.limits.batch_tokens, max(LEAST_SHARE, share))

    def _start(self, batch: _Batch) -> None:
        self.running += 1
        ids = [work.ids[place] for work, place in batch]
        running = asyncio.get_running_loop().run_in_executor(self._executor, batch[0][0].encode, ids)
        running.add_done_callback(partial(self._finish, batch, self._clock()))

    def _finish(self, batch: _Batch, started: float, running: "asyncio.Future[Vectors]") -> None:
        """Hand out the vectors of a batch, or its error, and start the next one."""
        self.running -= 1
        if error := running.exception():
            for work, _ in batch:
                self._fail(work, error)
        else:
            self._count(batch, self._clock() - started)
            for (work, place), vector in zip(batch, running.result(), strict=True):
                work.put(place, vector)
        self._pump()
        self._note_idle()

    def _count(self, batch: _Batch, seconds: float) -> None:
        tokens = sum(len(work.ids[place]) for work, place in batch)
        self.counts.batches += 1
        self.counts.texts += len(batch)
        self.counts.tokens += tokens
        self.counts.seconds += seconds
        speed = tokens / max(seconds, 1e-6)
        self._speed = speed if not self._speed else self._speed + SMOOTHING * (speed - self._speed)

    def _note_idle(self) -> None:
        if not self._waiting and not self.running:
            self._idle.set()
