"""An event loop whose clock jumps to the next timer, and workers that need simulated seconds: load without waiting."""

import asyncio
import concurrent.futures
import selectors

import numpy as np

from sentloom.serving.batcher import Batcher, QueueFull

SPEED, OVERHEAD = 15_000, 0.001  # of a worker: tokens a second, and seconds per batch


class _Skipping(selectors.DefaultSelector):
    """Instead of waiting, moves the clock."""

    loop = None

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout:
            self.loop.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.now, selector = 0.0, _Skipping()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.now


class SimulatedWorkers(concurrent.futures.Executor):
    def submit(self, encode, ids):
        future = concurrent.futures.Future()
        seconds = OVERHEAD + sum(map(len, ids)) / SPEED
        asyncio.get_running_loop().call_later(seconds, lambda: future.set_result(encode(ids)))
        return future


def encode(ids):
    return np.ones((len(ids), 1), np.float32)


async def closed_loop(batcher, requests, clients, seconds):
    """Clients that ask without a pause: the seconds of each answer. None is refused."""
    loop, found = asyncio.get_running_loop(), []

    async def client():
        while loop.time() < seconds:
            start = loop.time()
            await batcher.submit(encode, next(requests))
            found.append(loop.time() - start)

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


async def open_loop(batcher, requests, gaps):
    """Requests that arrive after gaps: the seconds of the accepted ones, and the number of the others."""
    loop, found, refused, tasks = asyncio.get_running_loop(), [], [], []

    async def one(ids):
        start = loop.time()
        try:
            await batcher.submit(encode, ids)
            found.append(loop.time() - start)
        except QueueFull as full:
            refused.append(full.retry_after)

    for gap in gaps:
        await asyncio.sleep(gap)
        tasks.append(asyncio.ensure_future(one(next(requests))))
    await asyncio.gather(*tasks)
    return found, refused


def simulate(scenario, limits=None, workers=2):
    """Run an async scenario with a batcher whose clock and workers are simulated."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        loop = runner.get_loop()
        return runner.run(scenario(Batcher(SimulatedWorkers(), workers, limits, clock=loop.time)))
