"""Requests that no honest client sends, made from a seed; and how a server answered them."""

import json
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

KEY = "0123456789abcdef0123456789abcdef"
PATIENCE = 30.0  # seconds: the server gives a head and a body 10 each
CLOSED, HANGS = "closed", "hangs"
MEGABYTE = 1 << 20
BODIES = {
    "/v1/embeddings": {"input": ["Two dogs run across the snow."], "encoding_format": "float"},
    "/v1/similarity": {"a": ["Yes", "No"], "b": ["Perhaps"]},
    "/v1/search": {"query": "dogs", "k": 3},
    "/v1/rerank": {"query": "dogs", "documents": ["Two dogs run.", "Yes"]},
}
ODD_VALUES = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x" * 5000,
    [],
    [[]],
    [1, 2],
    [None],
    {},
    {"a": 1},
    ["a", 1],
    "\ud800",
)
FIELDS = ("input", "model", "encoding_format", "dimensions", "role", "a", "b", "query", "k", "__proto__", "Input")


@dataclass(frozen=True)
class Attack:
    """Bytes in parts with a pause after each; then the client waits, stops sending, or resets the connection."""

    parts: tuple[bytes, ...]
    pause: float = 0.0
    then: str = "wait"


def request(path: str, body: bytes, key: str = KEY, method: str = "POST", length: int | None = None) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n"
    declared = len(body) if length is None else length
    return f"{head}Content-Type: application/json\r\nContent-Length: {declared}\r\n\r\n".encode() + body


def valid(choose: random.Random) -> tuple[str, bytes]:
    path = choose.choice(sorted(BODIES))
    return path, json.dumps(BODIES[path]).encode()


def bad_json(choose: random.Random) -> Attack:
    path, body = valid(choose)
    broken = (body[: choose.randrange(len(body))], body + b"]", b"\xff\xfe" + body, b"[" * 200_000, b'{"a":' * 5000)
    return Attack((request(path, choose.choice(broken)),))


def wrong_field(choose: random.Random) -> Attack:
    """A value of the wrong kind in place of the texts, and often in another field too."""
    path, _ = valid(choose)
    texts = {"/v1/embeddings": "input", "/v1/similarity": "a", "/v1/search": "query", "/v1/rerank": "documents"}[path]
    wrong = [value for value in ODD_VALUES if not isinstance(value, str) or value == "\ud800"]
    body = {choose.choice(FIELDS): choose.choice(ODD_VALUES), texts: choose.choice(wrong)}
    return Attack((request(path, json.dumps(body).encode()),))


def wrong_key(choose: random.Random) -> Attack:
    path, body = valid(choose)
    keys = ("", KEY[:-1], KEY + "0", KEY.upper(), f"{KEY} {KEY}", "\x00" * 32, "é" * 40, "a" * 20_000)
    return Attack((request(path, body, choose.choice(keys)),))


def huge(choose: random.Random) -> Attack:
    """Bodies beyond the limits: declared, in chunks without a length, or within the bytes but with too many texts."""
    path, _ = valid(choose)
    declared = request(path, b'{"input": "' + b"a" * MEGABYTE, length=choose.choice((5, 5000, 10**9)) * MEGABYTE)
    head = request(path, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunks = (b"%x\r\n" % MEGABYTE + b"a" * MEGABYTE + b"\r\n",) * 6
    many = request("/v1/embeddings", json.dumps({"input": ["a"] * 5000}).encode())
    return choose.choice((Attack((declared,)), Attack((head, *chunks)), Attack((many,))))


def slow(choose: random.Random) -> Attack:
    """A head or a body that comes by the byte."""
    path, body = valid(choose)
    head, _, body = request(path, body).partition(b"\r\n\r\n")
    start = head[:-20] if choose.random() < 0.5 else head + b"\r\n\r\n" + body[:5]
    return Attack((start, *([b"a"] * 60)), pause=0.5)


def half_closed(choose: random.Random) -> Attack:
    """The client stops sending, or goes away, in the middle of a request or right after it."""
    whole = request(*valid(choose))
    end = choose.choice((len(whole), len(whole) - 3, choose.randrange(1, len(whole))))
    return Attack((whole[:end],), then=choose.choice(("stop", "reset")))


def no_http(choose: random.Random) -> Attack:
    path, body = valid(choose)
    good = request(path, body)
    return Attack(
        choose.choice(
            (
                (choose.randbytes(choose.randrange(1, 5000)) + b"\r\n\r\n",),
                (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",),
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",),
                (good.replace(b"POST", b"BREW"),),
                (good.replace(b"HTTP/1.1", b"HTTP/9.9"),),
                (good.replace(b"Content-Length: ", b"Content-Length: -"),),
                (good.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nContent-Length"),),
                (good.replace(b"Host", b"X: " + b"a" * 200_000 + b"\r\nHost"),),
                (good.replace(b"Host", b"".join(b"X%d: 1\r\n" % at for at in range(20_000)) + b"Host"),),
                (good.replace(b"Host: ", b"Host: \x00\x01"),),
            )
        )
    )


def wrong_place(choose: random.Random) -> Attack:
    paths = (
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/embeddings/",
        "//v1",
        "/" + "a" * 20_000,
        "/page.py",
    )
    if choose.random() < 0.5:
        return Attack((request(choose.choice(paths), b"{}"),))
    return Attack((request("/v1/embeddings", b"{}", method=choose.choice(("PUT", "DELETE", "PATCH", "OPTIONS"))),))


QUICK: tuple[Callable[[random.Random], Attack], ...] = (
    *(bad_json, wrong_field, wrong_key, huge, half_closed, no_http, wrong_place),
)


def attacks(number: int, seed: int) -> Iterator[tuple[str, Attack]]:
    """Attacks in random order: one in twenty is slow."""
    choose = random.Random(seed)
    for _ in range(number):
        kind = slow if choose.random() < 0.05 else choose.choice(QUICK)
        yield kind.__name__, kind(choose)


def carry_out(port: int, attack: Attack) -> str:
    """The status of the answer, CLOSED if the server closed the connection without one, or HANGS."""
    end, received = time.monotonic() + PATIENCE, b""
    with suppress(ConnectionError, BrokenPipeError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(PATIENCE)
        try:
            with suppress(ConnectionError):  # refused while it sends: the answer may be there
                _send(connection, attack)
            if attack.then == "reset":
                return CLOSED
            while time.monotonic() < end and (found := connection.recv(65536)):
                received += found
            if time.monotonic() >= end:
                return HANGS
        except TimeoutError:
            return HANGS
    return received[9:12].decode("latin-1") or CLOSED


def _send(connection: socket.socket, attack: Attack) -> None:
    for part in attack.parts:
        connection.sendall(part)
        time.sleep(attack.pause)
    if attack.then == "stop":
        connection.shutdown(socket.SHUT_WR)
    if attack.then == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
