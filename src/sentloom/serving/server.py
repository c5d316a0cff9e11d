"""Run the application with uvicorn: an address, limits for slow clients, and a shutdown that answers what began.

Memory stays flat under load, and connections without a key make room for those with one.
"""

import asyncio
import ctypes
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sentloom.errors import InputError
from sentloom.serving.gate import App
from sentloom.serving.schema import Refusal
from sentloom.serving.service import Service

# oneDNN keeps compiled kernels for the last 1,024 shapes of products, some 500 KB each, and a batch of a new size needs
# four: memory would grow under load. It reads this when the first product is computed.
CACHED_KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of glibc's mallopt
KEPT_FREE = 16 << 20  # bytes at the end of the heap that are not returned to the system; by default up to 64 MB
CONNECTIONS = 1024
STRANGERS = 768  # of them, those whose last request had no key, or that have not sent one yet, at most
RESERVED = 64  # of them, at least: for health checks, and requests whose head is still on its way
OTHER_FILES = 256  # that the process has open besides connections
KEEP_ALIVE = 75  # seconds without a request; load balancers keep connections for 60
LINGER = 0.3  # seconds for which a server that shuts down still answers, with 503, so that clients go elsewhere
SHUTDOWN_SECONDS = 60  # after which unfinished requests are cut off
LAST_SECONDS = 5  # more, after which the process ends even if a thread still computes
TICKS = 10  # calls of `on_tick` a second
PIPELINED = 16  # requests of a connection that wait for the one before: a client that sends more is cut off
HEALTH = b"/health"
CROWDED = Refusal(503, "Too many connections. Try again.", code="crowded", retry_after="1", connection="close")


def limit_memory() -> None:
    """Cache few kernels, and return freed memory early. Call it before the first product is computed."""
    os.environ.setdefault(*CACHED_KERNELS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None  # glibc has it, musl does not
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, KEPT_FREE)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        problem = f"{host}:{port} cannot be used: {os.strerror(error.errno or 0)}"
        raise InputError("--port", problem, "a free port of this machine", "choose another --port or --host") from None


def run(app: App, service: Service, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until a signal. The process then ends in `LAST_SECONDS`, even if a thread still computes."""
    config = uvicorn.Config(
        app,
        http=partial(ServedProtocol, service, Crowd(*_room())),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    DrainingServer(config, service, started).run([listener])
    last = threading.Timer(LAST_SECONDS, os._exit, [0])
    last.daemon = True
    last.start()


def _room() -> tuple[int, int, int]:
    """How many connections there may be, at most and at least without a key: fewer if fewer files may be open."""
    if sys.platform == "win32":
        return CONNECTIONS, STRANGERS, RESERVED
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + OTHER_FILES
    if 0 <= soft < needed:
        soft = needed if hard < 0 else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = CONNECTIONS if soft < 0 else min(CONNECTIONS, max(RESERVED, soft - OTHER_FILES))
    return most, most * STRANGERS // CONNECTIONS, most * RESERVED // CONNECTIONS


class DrainingServer(uvicorn.Server):
    """On SIGTERM or Ctrl-C: answers all requests that began, refuses new ones with 503, and ends with exit code 0."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._started, self._draining_since = service, started, 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the address once it answers."""
        await super().startup(sockets)
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; a second signal stops at once."""
        if self._service.draining:
            self.should_exit = self.force_exit = True
        else:
            self._service.draining, self._draining_since = True, time.monotonic()

    async def on_tick(self, counter: int) -> bool:
        """End what takes too long; stop when all requests are answered and read, or after a time."""
        if counter % TICKS == 0:
            self._service.batcher.refuse_overdue()
            for connection in self._connections():
                connection.check_read(time.monotonic())
        if self._service.draining:
            busy = self._service.in_flight or any(connection.is_unread for connection in self._connections())
            waited = time.monotonic() - self._draining_since
            self.should_exit |= waited >= (SHUTDOWN_SECONDS if busy else LINGER)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections; cut off those that are left when the time is over."""
        waited = time.monotonic() - self._draining_since if self._service.draining else 0.0
        left = 0.0 if self.force_exit else max(0.0, SHUTDOWN_SECONDS - waited)
        self.config.timeout_graceful_shutdown = math.ceil(left) + 1
        cutting = asyncio.get_running_loop().call_later(left, self._cut_off)
        await super().shutdown(sockets)
        cutting.cancel()
        self._cut_off()

    def _cut_off(self) -> None:
        for connection in self._connections():
            connection.cut_off()

    def _connections(self) -> list[Any]:
        return list(self.server_state.connections)


class TimedProtocol(HttpToolsProtocol):
    """Closes connections whose head, body or next request takes too long, or whose head is too large.

    A clock runs unless a complete request is being answered. uvicorn waits forever for heads, bodies, and whatever
    follows a blank line.
    """

    head_seconds = 10.0
    head_bytes = 64 << 10
    body_seconds = 11.0  # of any method; the gate, which waits a little less, answers with 408 where it still can

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._due = self.loop.call_later(self.head_seconds, self._expire, self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._due.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head that is not complete yet."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > self.head_bytes and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        """Start the clock of the next request on the same connection."""
        super().on_message_begin()
        self._restart(self.head_seconds)

    def on_headers_complete(self) -> None:
        """Start the clock of the body, unless the head is too large: it may have come in one piece."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.head_bytes:
            raise ValueError("the head is too large")  # uvicorn answers with 400
        self._restart(self.body_seconds)
        self._head_bytes = -(1 << 62)  # what follows is no head
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the clock until the request is answered, and count the next head from 0."""
        self._due.cancel()
        self._head_bytes = 0
        super().on_message_complete()
        self._await_next()

    def on_response_complete(self) -> None:
        """Start the clock of a connection without a request."""
        super().on_response_complete()
        self._await_next()

    def _await_next(self) -> None:
        """Start a clock that only a request stops, if the last one has arrived and is answered, in whichever order."""
        if self._due.cancelled() and self.cycle.response_complete and not self.transport.is_closing():
            self._restart(self.timeout_keep_alive)

    def _restart(self, seconds: float) -> None:
        self._due.cancel()
        self._due = self.loop.call_later(seconds, self._expire, seconds)

    def _expire(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is we who do not read: an earlier request is being answered
            self._restart(seconds)
        else:
            self.transport.close()


class ServedProtocol(TimedProtocol):
    """A connection that is counted, makes room for others if it has no key, and ends if its answers are not read."""

    def __init__(self, service: Service, crowd: "Crowd", **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.service, self.crowd = service, crowd
        self._unread_since: float | None = None
        self._is_cut_off = False

    def connection_made(self, transport: Any) -> None:
        """Count it among those without a key."""
        super().connection_made(transport)
        self.crowd.place(self, known=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self.crowd.forget(self)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Cut off a client that asks much more than it waits for: its requests are parsed all at once, and kept."""
        if len(self.pipeline) >= PIPELINED:
            self.cut_off()
            raise ValueError(f"more than {PIPELINED} requests wait")  # the parser reads no more of what was received
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count it by the key of its request; if there are too many with one, only health checks are answered."""
        self.crowd.place(self, known=self.service.admits(dict(self.headers)))
        health = self.url.partition(b"?")[0] == HEALTH
        self.app = CROWDED.response() if self.crowd.is_full and not health else self.config.loaded_app
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Count the answer, unless it comes too late."""
        self.service.answered += not self._is_cut_off
        super().on_response_complete()

    @property
    def is_unread(self) -> bool:
        """Whether a part of an answer is still to be sent, since the client does not read it."""
        return self.transport.get_write_buffer_size() > 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.is_unread or not (self.cycle is None or self.cycle.response_complete)

    def check_read(self, now: float) -> None:
        """Cut the connection off if its client has not read all of its answers for too long."""
        if not self.is_unread:
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        elif now - self._unread_since >= self.service.limits.answer_seconds:
            self.cut_off()

    def cut_off(self) -> None:
        """End the connection at once, and count the requests that are not answered because of it."""
        if self.is_busy:
            if self.cycle is None or self.cycle.response_complete:
                self.service.answered -= 1  # its answer was complete, but not read
            self.service.cut_off += 1 + len(self.pipeline)
        self._is_cut_off = True
        self.crowd.forget(self)
        self.connections.discard(self)
        self.transport.abort()


class Crowd:
    """The open connections. Those without a key have a limit of their own, and make room for those with one."""

    def __init__(self, most: int = CONNECTIONS, strangers: int = STRANGERS, reserved: int = RESERVED) -> None:
        self._known: set[ServedProtocol] = set()
        self._strangers: dict[ServedProtocol, None] = {}  # first the one whose last request is the oldest
        self._most, self._most_strangers, self._reserved = most, strangers, reserved

    @property
    def is_full(self) -> bool:
        """Whether there are more connections with a key than there may be."""
        return len(self._known) > self._most - self._reserved

    def place(self, connection: ServedProtocol, *, known: bool) -> None:
        """Count a connection that opens or sends a request. One without a key too many: the oldest makes room.

        It does so even while it is answered: otherwise those who keep the server busy would stay, and others go.
        """
        self.forget(connection)
        if known:
            self._known.add(connection)
        else:
            self._strangers[connection] = None
        room = max(self._reserved, min(self._most_strangers, self._most - len(self._known)))
        if len(self._strangers) > room:
            next(iter(self._strangers)).cut_off()

    def forget(self, connection: ServedProtocol) -> None:
        """Count a connection no longer."""
        self._known.discard(connection)
        self._strangers.pop(connection, None)
