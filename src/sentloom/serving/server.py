"""Run the application with uvicorn: an address, limits for slow clients, and a shutdown that answers what began."""

import os
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sentloom.errors import InputError
from sentloom.serving.gate import App
from sentloom.serving.service import Service

CONNECTIONS = 1024
KEEP_ALIVE = 75  # seconds without a request; load balancers keep connections for 60
LINGER = 0.3  # seconds for which a server that shuts down still answers, with 503, so that clients go elsewhere
SHUTDOWN_SECONDS = 60  # after which unfinished requests are given up


class TimedProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers take too long or are too large; uvicorn would wait forever."""

    head_seconds = 10.0
    head_bytes = 64 << 10

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._head_due = self.loop.call_later(self.head_seconds, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._head_due.cancel()
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
        self._head_due.cancel()
        self._head_due = self.loop.call_later(self.head_seconds, self.transport.close)

    def on_headers_complete(self) -> None:
        """Stop the clock: the body has its own."""
        self._head_due.cancel()
        self._head_bytes = -(1 << 62)  # what follows is no head
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count the next head from 0."""
        self._head_bytes = 0
        super().on_message_complete()


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
        """Stop when all requests are answered, or after a time."""
        if self._service.draining:
            waited = time.monotonic() - self._draining_since
            self.should_exit |= waited >= (SHUTDOWN_SECONDS if self._service.in_flight else LINGER)
        return await super().on_tick(counter)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        problem = f"{host}:{port} cannot be used: {os.strerror(error.errno or 0)}"
        raise InputError("--port", problem, "a free port of this machine", "choose another --port or --host") from None


def run(app: App, service: Service, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until a signal."""
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    DrainingServer(config, service, started).run([listener])
