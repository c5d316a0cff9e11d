"""Dynamic batching, with functions for models: a text's "vector" is the sum and the number of its ids."""

import asyncio
import itertools
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from sentloom.serving.batcher import LEAST_SHARE, Batcher, BatchLimits, QueueClosed, QueueFull, WaitedTooLong
from tests.serving.simulated import closed_loop, open_loop, simulate


class Model:
    """Records its batches; while `free` is not set, batches wait."""

    def __init__(self, blocked=False):
        self.batches, self.free, self.entered = [], threading.Event(), threading.Event()
        if not blocked:
            self.free.set()

    def encode(self, ids):
        self.batches.append([list(tokens) for tokens in ids])
        self.entered.set()
        assert self.free.wait(60)
        return np.array([[sum(tokens), len(tokens)] for tokens in ids], np.float32)

    @property
    def seen(self):
        return [text for batch in self.batches for text in batch]


def texts(*ids):
    return [array("i", tokens) for tokens in ids]


def run(scenario, limits=None, workers=1, loop=uvloop.new_event_loop):
    """Run an async scenario with a batcher, on the event loop that servers use."""

    async def inside(executor):
        return await asyncio.wait_for(scenario(Batcher(executor, workers, limits)), 60)

    with ThreadPoolExecutor(workers) as executor, asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(inside(executor))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


requests = st.lists(
    st.tuples(st.booleans(), st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=400), min_size=1, max_size=9)),
    min_size=1,
    max_size=8,
)


@given(requests, st.integers(1, 3), st.sampled_from([asyncio.new_event_loop, uvloop.new_event_loop]))
def test_every_request_gets_its_own_vectors_and_batches_keep_the_budget(requests, workers, loop):
    first, second = Model(), Model()

    async def scenario(batcher):
        jobs = [batcher.submit((first if is_first else second).encode, texts(*ids)) for is_first, ids in requests]
        return await asyncio.gather(*jobs), batcher.waiting_tokens

    limits = BatchLimits(batch_tokens=500)
    answers, left = run(scenario, limits, workers, loop)
    assert left == 0
    for (_, ids), vectors in zip(requests, answers, strict=True):
        assert vectors.tolist() == [[sum(tokens), len(tokens)] for tokens in ids]
    for model, mine in ((first, True), (second, False)):
        expected = sorted(text for is_first, ids in requests if is_first == mine for text in ids)
        assert sorted(model.seen) == expected  # each text once, and none of the other model's
        assert all(len(batch) == 1 or sum(map(len, batch)) <= 500 for batch in model.batches)


def test_a_small_request_does_not_wait_behind_a_large_one():
    model = Model()

    async def scenario(batcher):
        large = batcher.submit(model.encode, texts(*([1] * 100 for _ in range(50))))
        small = batcher.submit(model.encode, texts([7]))
        await small
        done_with_small = len(model.batches)
        await large
        return done_with_small

    assert run(scenario, BatchLimits(batch_tokens=1000)) <= 2
    assert [7] in model.batches[0]
    assert len(model.batches) >= 5  # the large one was split


def test_a_single_text_beyond_the_budget_runs_alone():
    model = Model()

    async def scenario(batcher):
        await asyncio.gather(*(batcher.submit(model.encode, texts([at] * 300)) for at in range(3)))

    run(scenario, BatchLimits(batch_tokens=256))
    assert [len(batch) for batch in model.batches] == [1, 1, 1]


def test_what_waits_is_divided_among_idle_workers():
    model = Model()

    async def scenario(batcher):
        await batcher.submit(model.encode, texts(*([1] * 10 for _ in range(100))))

    run(scenario, BatchLimits(batch_tokens=2000), workers=2)
    assert sorted(map(len, model.batches)) == [50, 50]


def test_few_tokens_are_not_divided():
    model = Model()

    async def scenario(batcher):
        await batcher.submit(model.encode, texts(*([1] for _ in range(LEAST_SHARE))))

    run(scenario, workers=4)
    assert len(model.batches) == 1


def test_while_a_batch_runs_the_next_waits_until_it_is_full():
    model = Model(blocked=True)

    async def scenario(batcher):
        jobs = [batcher.submit(model.encode, texts([1] * 300))]
        await until(model.entered.is_set)  # an idle machine starts at once
        for _ in range(2):
            jobs.append(batcher.submit(model.encode, texts([2] * 100)))
            await asyncio.sleep(0.01)
        before = len(model.batches)
        jobs.append(batcher.submit(model.encode, texts([3] * 100)))
        await until(lambda: len(model.batches) == 2)
        model.free.set()
        await asyncio.gather(*jobs)
        return before

    limits = BatchLimits(batch_tokens=300, batch_wait=3600)
    assert run(scenario, limits, workers=2) == 1
    assert [len(tokens) for tokens in model.batches[1]] == [100, 100, 100]


def test_while_a_batch_runs_the_next_starts_when_its_oldest_text_is_due():
    model = Model(blocked=True)

    async def scenario(batcher):
        jobs = [batcher.submit(model.encode, texts([1]))]
        await until(model.entered.is_set)
        jobs.append(batcher.submit(model.encode, texts([2])))
        await until(lambda: len(model.batches) == 2)  # the first still runs, and the second is far from full
        model.free.set()
        await asyncio.gather(*jobs)

    run(scenario, BatchLimits(batch_wait=0.01), workers=2)
    assert model.batches == [[[1]], [[2]]]


def test_a_full_queue_refuses_until_it_empties_and_takes_urgent_work_first():
    model = Model(blocked=True)

    async def scenario(batcher):
        jobs = [batcher.submit(model.encode, texts([1]))]
        await until(model.entered.is_set)
        jobs += [batcher.submit(model.encode, texts([2] * 100)) for _ in range(2)]
        assert batcher.is_full  # one runs, two wait
        with pytest.raises(QueueFull) as full:
            batcher.submit(model.encode, texts([3]))
        jobs.append(batcher.submit(model.encode, texts([4]), urgent=True))
        model.free.set()
        await asyncio.gather(*jobs)
        jobs.append(batcher.submit(model.encode, texts([5])))
        await jobs[-1]
        return full.value.retry_after

    assert run(scenario, BatchLimits(requests=3, batch_tokens=100)) >= 1
    assert model.batches[1] == [[4]]  # before the two of 100 tokens, with which it does not fit into a batch
    assert [3] not in model.seen
    assert [5] in model.seen


def test_a_request_counts_until_it_is_answered_or_dropped():
    model = Model(blocked=True)

    async def scenario(batcher):
        jobs = [batcher.submit(model.encode, texts([1], [2])), batcher.submit(model.encode, texts([3]))]
        await until(model.entered.is_set)
        counted = [batcher.requests]
        jobs.pop().cancel()
        await asyncio.sleep(0)
        counted.append(batcher.requests)
        model.free.set()
        await asyncio.gather(*jobs)
        await asyncio.sleep(0)
        return [*counted, batcher.requests]

    assert run(scenario) == [2, 1, 0]


def test_cancelled_work_is_dropped_from_the_queue():
    model = Model(blocked=True)

    async def scenario(batcher):
        first = batcher.submit(model.encode, texts([1]))
        await until(model.entered.is_set)
        gone = batcher.submit(model.encode, texts([2] * 50, [3] * 50))
        stays = batcher.submit(model.encode, texts([4]))
        gone.cancel()
        await asyncio.sleep(0)
        waiting = batcher.waiting_tokens
        model.free.set()
        await asyncio.gather(first, stays)
        return waiting, batcher.counts.dropped

    assert run(scenario) == (1, 1)
    assert model.seen == [[1], [4]]


def test_a_request_has_its_place_from_before_its_texts_are_tokenised():
    model = Model()

    async def tokenise(batcher, free):
        with batcher.admitted():
            await free.wait()
        return await batcher.submit(model.encode, texts([1]))

    async def scenario(batcher):
        free = asyncio.Event()
        first, leaves = (asyncio.ensure_future(tokenise(batcher, free)) for _ in range(2))
        await until(lambda: batcher.requests == 2)
        with pytest.raises(QueueFull):
            batcher.submit(model.encode, texts([2]))
        with pytest.raises(QueueFull), batcher.admitted():
            pass
        leaves.cancel()
        await until(lambda: batcher.requests == 1)
        assert batcher.counts.dropped == 1
        free.set()
        assert (await first).tolist() == [[1, 1]]
        assert batcher.requests == 0

    run(scenario, BatchLimits(requests=2))
    assert model.seen == [[1]]


def test_closing_answers_all_that_was_accepted_and_takes_no_more():
    model = Model(blocked=True)

    async def scenario(batcher):
        jobs = [batcher.submit(model.encode, texts([at])) for at in range(20)]
        closing = asyncio.ensure_future(batcher.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        with pytest.raises(QueueClosed):
            batcher.submit(model.encode, texts([99]))
        model.free.set()
        await closing
        return [job.result()[0, 0] for job in jobs]

    assert run(scenario, BatchLimits(batch_tokens=3)) == list(range(20))


def test_an_error_reaches_the_requests_of_its_batch_and_no_others():
    def encode(ids):
        if any(13 in tokens for tokens in ids):
            raise MemoryError("too large")
        return np.ones((len(ids), 1), np.float32)

    async def scenario(batcher):
        bad = batcher.submit(encode, texts([13] * 100, [1] * 100))
        with pytest.raises(MemoryError):
            await bad
        good = await batcher.submit(encode, texts([1]))
        await batcher.close()
        return good, batcher.waiting_tokens

    good, waiting = run(scenario, BatchLimits(batch_tokens=100))
    assert (good.tolist(), waiting) == ([[1.0]], 0)


def test_a_request_that_waits_too_long_is_refused_unless_it_has_begun():
    model = Model(blocked=True)

    async def scenario(batcher):
        begun = batcher.submit(model.encode, texts([1] * 100, [2] * 100))
        await until(model.entered.is_set)
        late = batcher.submit(model.encode, texts([3]))
        await asyncio.sleep(0.05)
        model.free.set()
        with pytest.raises(WaitedTooLong):
            await late
        return (await begun).tolist()

    assert run(scenario, BatchLimits(batch_tokens=100, queue_wait=0.01)) == [[100, 100], [200, 100]]
    assert [3] not in model.seen


def test_retry_after_follows_the_measured_speed():
    model = Model()

    async def scenario(batcher):
        assert batcher.retry_after == 1  # nothing is known yet
        batcher._speed, batcher.waiting_tokens = 100.0, 650
        return batcher.retry_after

    assert run(scenario, workers=2) == 4  # 650 tokens at 2 x 100 a second
    assert model.seen == []


def short(generator):
    return [generator.integers(5, 40)]


def long(generator):
    return [250]


def mixed(generator):
    """A question, or a document in many chunks."""
    return [200] * 30 if generator.random() < 0.1 else [generator.integers(5, 40)]


@pytest.mark.parametrize("sizes", [short, long, mixed])
def test_at_four_times_the_capacity_accepted_requests_wait_at_most_twice_as_long(sizes):
    generator = np.random.default_rng(0)
    requests = (texts(*([1] * size for size in sizes(generator))) for _ in itertools.count())
    at_capacity = simulate(lambda batcher: closed_loop(batcher, requests, 64, 6.0))
    rate = len(at_capacity) / 6.0
    gaps = generator.exponential(1 / (4 * rate), 2000)
    accepted, refused = simulate(lambda batcher: open_loop(batcher, requests, gaps))
    assert len(accepted) + len(refused) == 2000
    assert len(accepted) >= 0.9 * rate * gaps.sum()  # the server still does what it can
    assert np.percentile(accepted, 99) <= 2 * np.percentile(at_capacity, 99)
    assert all(1 <= seconds <= 60 for seconds in refused)
