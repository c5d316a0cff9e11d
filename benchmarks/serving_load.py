"""`sentloom serve` under load, on loopback only: overload, shutdown, and speed against a plain server.

    python -m benchmarks.serving_load [-o out/serving-load.json] [--parts overload,sigterm,clients]
                                      [--requests 10000] [--runs 3] [--stops 50] [--seconds 10] [--rounds 5]
                                      [--infinity ENVIRONMENT/bin/infinity_emb]

overload: the capacity is what 64 clients get that ask without a pause. Then requests arrive at four times that rate.
Reported: statuses, p99 of the accepted ones against p99 at capacity, memory, and the time until a request after the
load is answered as quickly as before it.
sigterm: the server is stopped under load, again and again; every request that it accepted must be answered.
clients: 1, 8 and 64 clients that send one short sentence per request, against FastAPI and `SentenceTransformer.encode`
and, if its command is given, infinity-emb, in turn. All must give the same vectors. infinity-emb needs another version
of transformers, so that it has an environment of its own:

    python -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install torch==2.13.0 'infinity-emb[torch,server]==0.0.78'

Each finished run is kept in OUT, so that a benchmark that was killed resumes. The clients run in this process and share
the machine with the server. Everything takes about 40 minutes on two quiet cores; `--requests 400 --runs 1 --stops 2
--seconds 2 --rounds 1` shows in two minutes that it works.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np

from benchmarks.encode_speed import real_sentences
from sentloom.encoder.locate import embedded_folder

CAPACITY_CLIENTS, OVERLOAD = 64, 4
CLIENTS = (1, 8, 64)
GAVE_UP = 0  # the status of a request whose connection broke
WARM_UP = 50  # requests
ROOT = Path(__file__).parents[1]
SENTLOOM = [sys.executable, "-m", "sentloom", "serve", "model=embedded", "--port", "0"]
PLAIN = [sys.executable, "-m", "benchmarks.serving_load", "--serve-plainly"]
OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}

# ---------------------------------------------------------------- servers


def serve_plainly():
    """What most tutorials show: FastAPI and `SentenceTransformer.encode`, one call per request."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sentence_transformers import SentenceTransformer

    class Body(BaseModel):
        input: list[str]

    app, model = FastAPI(), SentenceTransformer(str(embedded_folder()), device="cpu")

    @app.post("/v1/embeddings")
    def embeddings(body: Body):
        vectors = model.encode(body.input).tolist()
        return {"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]}

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"Serving at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])


@contextlib.contextmanager
def running(command):
    """A server process and its port."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=OFFLINE, cwd=ROOT) as process:
        try:
            yield process, next(int(m[1]) for line in process.stdout if (m := re.search(r"127\.0\.0\.1:(\d+)", line)))
        finally:
            process.kill()


@contextlib.contextmanager
def running_infinity(command):
    """infinity-emb and its port. It prints no address that it chose, and is ready when it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = f"v2 --engine torch --device cpu --host 127.0.0.1 --port {port} --url-prefix /v1 --log-level error"
    model = ["--model-id", embedded_folder(), "--served-model-name", "model"]
    with subprocess.Popen([command, *options.split(), *model], stdout=subprocess.DEVNULL, env=OFFLINE) as process:
        try:
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                time.sleep(0.2)
            yield process, port
        finally:
            process.kill()


def resident(process):
    """Megabytes."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    return int(found[1]) / 1024


# ---------------------------------------------------------------- clients


class Connection:
    """A kept HTTP connection, as little of one as possible: the clients share the machine with the server."""

    key = "none"

    def __init__(self, port):
        self.port, self.streams = port, None

    async def post(self, body):
        """The status of a request, or GAVE_UP; its seconds; and when it was sent."""
        start = time.perf_counter()
        try:
            if self.streams is not None and self.streams[0].at_eof():
                self.close()  # by the server, after a time without a request
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            status = await self._exchange(*self.streams, body)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            status = GAVE_UP
        return status, time.perf_counter() - start, start

    async def _exchange(self, reader, writer, body):
        head = f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        if length := re.search(rb"content-length: (\d+)", answer):
            await reader.readexactly(int(length[1]))
        else:  # in parts, each after its length; the last one is empty
            while await reader.readexactly(int(await reader.readuntil(b"\r\n"), 16) + 2) != b"\r\n":
                pass
        if b"connection: close" in answer:
            self.close()
        return int(answer[9:12])

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


def bodies_of(sentences):
    return [json.dumps({"model": "model", "input": [text]}).encode() for text in sentences]


async def closed_loop(port, bodies, clients, seconds=None, requests=None, until=lambda status: False):
    """Clients that ask without a pause, for a time, a number, or until a status: all (status, seconds, start)."""
    found, end = [], time.perf_counter() + (seconds or 1e9)

    async def client(first):
        connection = Connection(port)
        while time.perf_counter() < end and (requests is None or len(found) < requests):
            found.append(await connection.post(bodies[(first + len(found)) % len(bodies)]))
            if until(found[-1][0]):
                break
        connection.close()

    await asyncio.gather(*(client(at * 7) for at in range(clients)))
    return found


async def open_loop(port, bodies, rate, requests):
    """Requests that arrive at a rate, whatever became of the ones before."""
    idle, found, start = [], [], time.perf_counter()

    async def one(at):
        connection = idle.pop() if idle else Connection(port)
        found.append(await connection.post(bodies[at % len(bodies)]))
        idle.append(connection)

    tasks = []
    for at in range(requests):
        await asyncio.sleep(max(0, start + at / rate - time.perf_counter()))
        tasks.append(asyncio.ensure_future(one(at)))
    await asyncio.gather(*tasks)
    for connection in idle:
        connection.close()
    return found


def p99(found):
    return float(np.percentile([seconds for status, seconds, _ in found if status == 200], 99))


def counted(found):
    statuses = [status for status, _, _ in found]
    return {str(status): statuses.count(status) for status in sorted(set(statuses))}


# ---------------------------------------------------------------- the three parts


def overload(bodies, options):
    """One run: at capacity, at four times that, and after it."""
    with running(SENTLOOM) as (process, port):
        asyncio.run(closed_loop(port, bodies, CAPACITY_CLIENTS, requests=WARM_UP * 4))
        start = time.perf_counter()
        at_capacity = asyncio.run(closed_loop(port, bodies, CAPACITY_CLIENTS, requests=options.requests // 4))
        rate = len(at_capacity) / (time.perf_counter() - start)
        before = resident(process)
        found = asyncio.run(open_loop(port, bodies, OVERLOAD * rate, options.requests))
        recovery = recovers(port, bodies, statistics.median(seconds for _, seconds, _ in at_capacity))
        return {
            "capacity per second": round(rate),
            "statuses": counted(found),
            "p99 at capacity, ms": round(1000 * p99(at_capacity)),
            "p99 under load, ms": round(1000 * p99(found)),
            "memory before, MB": round(before),
            "memory after, MB": round(resident(process)),
            "recovery, s": round(recovery, 2),
        }


def recovers(port, bodies, usual):
    """Seconds until a request is answered within the usual time at capacity."""

    async def until_answered():
        connection, start = Connection(port), time.perf_counter()
        while time.perf_counter() - start < 60:
            status, seconds, _ = await connection.post(bodies[0])
            if status == 200 and seconds <= usual:
                break
        connection.close()
        return time.perf_counter() - start

    return asyncio.run(until_answered())


def sigterm(bodies, options):
    """One stop under load: the accepted requests, and those of them without an answer.

    A request on a connection that the server closed before it read it was not accepted: clients send these again.
    """
    with running(SENTLOOM) as (process, port):
        asyncio.run(closed_loop(port, bodies, 1, requests=WARM_UP))

        async def stopped():
            loop = asyncio.get_running_loop()
            when = []
            loop.call_later(1.0, lambda: (when.append(time.perf_counter()), process.send_signal(signal.SIGTERM)))
            return await closed_loop(port, bodies, CAPACITY_CLIENTS, seconds=3.0), when[0]

        found, when = asyncio.run(stopped())
        process.wait(60)
    accepted = [one for one in found if one[2] < when - 0.05]
    unanswered = sum(status == GAVE_UP for status, _, _ in accepted)
    answered = sum(status == 200 for status, _, _ in accepted)
    return {"answered": answered, "unanswered": unanswered, "exit code": process.returncode}


def clients(bodies, options):
    """One round: requests a second and p50 by the number of clients, of all servers, in random order."""
    results = {}
    with contextlib.ExitStack() as servers:
        ports = {
            name: servers.enter_context(running(one))[1] for name, one in {"sentloom": SENTLOOM, "plain": PLAIN}.items()
        }
        if options.infinity:
            ports["infinity"] = servers.enter_context(running_infinity(options.infinity))[1]
        check_same([first_vector(port, bodies[0]) for port in ports.values()])
        for port in ports.values():
            asyncio.run(closed_loop(port, bodies, 8, requests=WARM_UP))
        for number in CLIENTS:
            for name in random.sample(sorted(ports), len(ports)):
                results[f"{name} {number}"] = measured(ports[name], bodies, number, options.seconds)
    return results


def first_vector(port, body):
    """The vector of a body's first text."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/embeddings", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return np.array(json.load(answer)["data"][0]["embedding"])


def check_same(vectors):
    """Servers that do other work cannot be compared."""
    for vector in vectors[1:]:
        cosine = vector @ vectors[0] / np.linalg.norm(vector) / np.linalg.norm(vectors[0])
        assert cosine > 0.9999, cosine


def measured(port, bodies, number, seconds):
    """Requests a second and the median latency of clients that ask without a pause."""
    start = time.perf_counter()
    found = asyncio.run(closed_loop(port, bodies, number, seconds=seconds))
    assert counted(found).keys() == {"200"}, counted(found)
    rate = len(found) / (time.perf_counter() - start)
    median = statistics.median(seconds for _, seconds, _ in found)
    return {"per second": round(rate, 1), "median ms": round(1000 * median, 1)}


def summary(kept):
    """For each number of clients the ratios of requests a second, and the latencies: medians over rounds."""
    rounds = kept.get("clients", [])
    for number in CLIENTS if rounds else ():
        for other in ("plain", "infinity"):
            both = [one for one in rounds if f"{other} {number}" in one]
            if both:
                yield compared(
                    number, other, *([one[f"{name} {number}"] for one in both] for name in ("sentloom", other))
                )


def compared(number, other, ours, theirs):
    ratios = [a["per second"] / b["per second"] for a, b in zip(ours, theirs, strict=True)]
    waits = [statistics.median(one["median ms"] for one in server) for server in (ours, theirs)]
    spread = f"{statistics.median(ratios):.2f}x {other} (rounds {min(ratios):.2f} to {max(ratios):.2f})"
    return f"{number} clients: {spread}, median {waits[0]} ms against {waits[1]} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/serving-load.json"))
    parser.add_argument("--parts", default="overload,sigterm,clients")
    for name, default in (("requests", 10_000), ("runs", 3), ("stops", 50), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--infinity", help="the command infinity_emb of an environment of its own")
    parser.add_argument("--serve-plainly", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_plainly:
        serve_plainly()
        return
    kept = json.loads(options.output.read_text()) if options.output.is_file() else {}
    bodies = bodies_of(real_sentences(1500)[1])
    times = {overload: options.runs, sigterm: options.stops, clients: options.rounds}
    for part in [part for part in times if part.__name__ in options.parts.split(",")]:
        done = kept.setdefault(part.__name__, [])
        while len(done) < times[part]:
            done.append(part(bodies, options))
            print(part.__name__, json.dumps(done[-1]), flush=True)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(kept, indent=1))
    print(*summary(kept), sep="\n")


if __name__ == "__main__":
    main()
