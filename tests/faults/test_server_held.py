"""Clients that hold a server up: many connections, bodies that drip, wide JSON, huge texts, answers that are not read.

Meanwhile a request with the key and a health check are answered; and on SIGTERM the process ends in its time.
"""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.encoder.small_models import build_model_folder
from tests.faults.attacks import KEY, request
from tests.faults.conftest import Tally
from tests.faults.servers import ask, served

pytestmark = pytest.mark.long
FAULT = "server held by many, slow, wide or huge requests"
ASKED = 7

EMBEDDINGS = "/v1/embeddings"
CONNECTIONS = 1200
GRACE = 70  # seconds: what deploy/ leaves after SIGTERM at least
DRIPS_FOR = 60  # seconds, unless the server ends it


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    build_model_folder("bert", folder / "small")
    (folder / "key").write_text(KEY)
    return folder


@contextlib.contextmanager
def connections(port: int) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for number in range(CONNECTIONS):
            one = held.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall((b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")[number % 3])
        yield


@contextlib.contextmanager
def at_once(*requests: bytes, port: int) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for sent in requests:
            held.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(sent)
        yield


def wide(port: int) -> contextlib.AbstractContextManager[None]:
    body = json.dumps({f"k{number}": 0 for number in range(300_000)}).encode()
    return at_once(*[request(EMBEDDINGS, body)] * 8, port=port)


def huge(port: int) -> contextlib.AbstractContextManager[None]:
    texts = [" " * 4_000_000, "a" * 4_000_000, ["Two dogs run. " * 70] * 4000]
    return at_once(*[request(EMBEDDINGS, json.dumps({"input": text}).encode()) for text in texts * 4], port=port)


@pytest.mark.parametrize("attack", [connections, wide, huge])
def test_others_are_answered_meanwhile(
    folder: Path, tally: Tally, attack: Callable[[int], contextlib.AbstractContextManager[None]]
) -> None:
    with served(folder, "small", "--api-key-file", "key") as (port, child):
        with attack(port), tally.case(attack.__name__):
            for _ in range(5):
                assert ask(port, EMBEDDINGS, {"input": "Yes"}, KEY, within=10).status == 200
                assert ask(port, "/health", within=10).status == 200
        assert child.poll() is None
        assert "Traceback" not in child.log.read_text()


@pytest.mark.parametrize(("method", "key"), [("GET", KEY), ("GET", "wrong"), ("POST", KEY)])
def test_a_body_that_drips_is_ended(folder: Path, method: str, key: str) -> None:
    sent = request("/v1/models", b"", key, method, length=1000).replace(b"Connection: close\r\n", b"")
    with (
        served(folder, "small", "--api-key-file", "key") as (port, _),
        socket.create_connection(("127.0.0.1", port)) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(sent)
        for _ in range(DRIPS_FOR):
            time.sleep(1)
            connection.sendall(b"a")  # fails once the server has closed the connection
        pytest.fail("the connection is still open")


def test_an_answer_that_nobody_reads_does_not_hold_sigterm_and_the_last_line_is_true(folder: Path) -> None:
    body = json.dumps({"a": ["Yes"] * 1000}).encode()
    with served(folder, "small") as (port, child), socket.socket() as client, ThreadPoolExecutor(1) as waiting:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(request("/v1/similarity", body))
        assert client.recv(12) == b"HTTP/1.1 200"
        assert ask(port, EMBEDDINGS, {"input": "Yes"}).status == 200
        start = time.monotonic()
        os.kill(child.pid, signal.SIGTERM)
        ended = waiting.submit(child.wait).result(timeout=2 * GRACE)
        assert time.monotonic() - start < GRACE
    assert ended.code == 0
    assert "Stopped. Requests answered: 1; cut off: 1." in ended.said()
