"""`sentloom serve` in a child that is forked from this warm process, so that fifty starts take a minute."""

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from tests.faults.commands import Child, begin

STARTS_WITHIN = 120  # seconds
ANSWERS_WITHIN = 60


@contextmanager
def served(folder: Path, *arguments: str, before: Callable[[], None] = lambda: None) -> Iterator[tuple[int, Child]]:
    """A running server's port and process; what it prints goes to a file in the folder. `before` runs in it first."""
    log = folder / "serve.log"
    log.unlink(missing_ok=True)
    child = begin(folder, log, ["serve", *arguments, "--port", "0"], before)
    try:
        yield _port(child), child
    finally:
        child.kill()


@dataclass(frozen=True)
class Answer:
    """A status, the headers, and the body as JSON."""

    status: int
    headers: Message
    body: Any

    @property
    def vectors(self) -> list[list[float]]:
        assert self.status == 200, self.body
        return [row["embedding"] for row in self.body["data"]]


def ask(port: int, path: str, body: object = None, key: str = "", within: float = ANSWERS_WITHIN) -> Answer:
    """The answer to a request: POST of JSON (or of bytes as they are), or GET without a body."""
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    try:
        connection.request("GET" if sent is None else "POST", path, sent, headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, json.loads(answer.read()))
    finally:
        connection.close()


def _port(child: Child) -> int:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and child.poll() is None:
        if child.log.exists() and (found := re.search(r"Serving at http://127\.0\.0\.1:(\d+)", child.log.read_text())):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(child.log.read_text() if child.log.exists() else "the server printed nothing")
