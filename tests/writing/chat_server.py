"""A small server that speaks /v1/chat/completions over real sockets, with faults on demand."""

import hashlib
import itertools
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Handler"], None]


@dataclass
class Server:
    url: str
    faults: list[Fault | None] = field(default_factory=list)  # one per request, from the first on; then it answers
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    busiest: int = 0
    running: int = 0
    seconds: float = 0.0  # per answer
    answer: Callable[[dict[str, Any]], str] | None = None
    usage: bool = True
    logprobs: Callable[[dict[str, Any]], Any] | None = None  # of an answer, where they are asked for
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tokens(self) -> int:
        """All tokens that it has counted in answers."""
        return sum(sum(tokens_of(body)) for body in self.bodies)


def default_text(body: dict[str, Any]) -> str:
    """Decided by the last message and the seed."""
    said = body["messages"][-1]["content"]
    if "answer with one word" in said:
        return "True." if "follows" in said else "false"
    number = hashlib.sha256(f"{said} {body['seed']}".encode()).hexdigest()[:4]
    return f"what follows from {said} {number}"


def tokens_of(body: dict[str, Any]) -> tuple[int, int]:
    read = sum(len(message["content"].split()) for message in body["messages"])
    return read, min(body["max_tokens"], 7)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_POST(self) -> None:
        state: Server = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with state.lock:
            fault = state.faults.pop(0) if state.faults else None  # None: this one is answered
            state.headers.append(dict(self.headers.items()))
            state.times.append(time.monotonic())
            state.running += 1
            state.busiest = max(state.busiest, state.running)
            if fault is None:
                state.bodies.append(body)
        try:
            time.sleep(state.seconds)
            if fault:
                fault(self)
            else:
                self.reply(completion(state, body))
        finally:
            with state.lock:
                state.running -= 1

    def reply(self, values: Any, status: int = 200, **headers: str) -> None:
        content = values if isinstance(values, bytes) else json.dumps(values).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Be quiet."""


def completion(state: Server, body: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    read, written = tokens_of(body)
    usage = {"usage": {"prompt_tokens": read, "completion_tokens": written}} if state.usage else {}
    message = {"role": "assistant", "content": (state.answer or default_text)(body)}
    stated = {"logprobs": state.logprobs(body)} if state.logprobs and body.get("logprobs") else {}
    return {"choices": [{"message": message, "finish_reason": reason, **stated}], **usage}


def status(code: int, **headers: str) -> Fault:
    return lambda handler: handler.reply({"error": {"message": "no"}}, code, **headers)


def reset(handler: Handler) -> None:
    """The connection breaks."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.rfile.close()  # otherwise it holds the socket open
    handler.connection.close()


def silent(seconds: float) -> Fault:
    def waits(handler: Handler) -> None:
        time.sleep(seconds)
        reset(handler)

    return waits


def truncated(handler: Handler) -> None:
    """Fewer bytes than promised."""
    handler.send_response(200)
    handler.send_header("Content-Length", "500")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    reset(handler)


def malformed(content: bytes, code: int = 200) -> Fault:
    return lambda handler: handler.reply(content, code)


def huge(handler: Handler) -> None:
    handler.reply(b" " * (5 << 20))


def dripping(content: bytes, seconds: float = 0.1) -> Fault:
    """Bytes of an answer, from its status line on, that never comes to an end: one at a time."""

    def drips(handler: Handler) -> None:
        with suppress(OSError):  # the client has gone
            for byte in itertools.chain(content, itertools.repeat(ord(" "))):
                handler.wfile.write(bytes([byte]))
                time.sleep(seconds)
        handler.close_connection = True

    return drips


@contextmanager
def chat_server(tls: ssl.SSLContext | None = None, port: int = 0, **settings: Any) -> Iterator[Server]:
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/v1"
        server.state = Server(address, **settings)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.state  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
