"""The load benchmark's own arithmetic; its servers are tried by running it with small numbers."""

import asyncio
import time

import numpy as np
import pytest

from benchmarks.serving_load import GAVE_UP, check_same, closed_loop, counted, open_loop, p99, summary


async def answering(status, port_of, seconds=0.0):
    """Run a function of a port against a server that always answers with one status."""

    open_connections = set()

    async def handle(reader, writer):
        open_connections.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                await asyncio.sleep(seconds)
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: 2\r\n\r\n{}" % status)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()
            open_connections.remove(writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        return await port_of(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        while open_connections:
            await asyncio.sleep(0.001)


def test_both_loops_count_every_request():
    closed = asyncio.run(answering(200, lambda port: closed_loop(port, [b"{}"], 3, requests=20)))
    assert 20 <= len(closed) <= 22  # clients that had begun
    assert counted(closed) == {"200": len(closed)}
    opened = asyncio.run(answering(429, lambda port: open_loop(port, [b"{}"], 1000, 30)))
    assert counted(opened) == {"429": 30}


def test_requests_arrive_at_the_rate_even_if_answers_are_slow():
    start = time.perf_counter()
    found = asyncio.run(answering(200, lambda port: open_loop(port, [b"{}"], 100, 20), seconds=0.5))
    begun = [one[2] for one in found]
    assert max(begun) - min(begun) >= 0.18  # 20 requests, 10 ms apart
    assert time.perf_counter() - start < 20 * 0.5  # not one after another


def test_a_server_that_is_gone_is_counted():
    found = asyncio.run(closed_loop(1, [b"{}"], 1, requests=2))  # nobody listens on port 1
    assert counted(found) == {str(GAVE_UP): 2}


def test_p99_is_of_the_accepted_ones():
    found = [(200, at / 100, 0.0) for at in range(101)] + [(429, 9.0, 0.0)]
    assert p99(found) == pytest.approx(0.99)


def test_the_summary_has_the_median_ratio():
    def one(ours, plain):
        rates = {"sentloom": ours, "plain": plain}
        return {
            f"{name} {n}": {"per second": rate, "median ms": 1.0} for name, rate in rates.items() for n in (1, 8, 64)
        }

    lines = list(summary({"clients": [one(10, 5), one(30, 5), one(20, 5)]}))
    assert len(lines) == 3
    assert lines[2].startswith("64 clients: 4.00x plain (rounds 2.00 to 6.00)")


def test_servers_that_give_other_vectors_are_not_compared():
    check_same([np.array([3.0, 4.0]), np.array([0.6, 0.8])])
    with pytest.raises(AssertionError):
        check_same([np.array([3.0, 4.0]), np.array([0.8, 0.6])])
