"""The first to see a request: refuses what is too large, too slow, not allowed or too much, and counts all answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from sentloom.serving.schema import Refusal
from sentloom.serving.service import Service

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

OPEN = {"/", "/page.css", "/page.js", "/health", "/openapi.json"}  # without a key: they show no data
PATHS = OPEN | {
    "/v1/classify",
    "/v1/embeddings",
    "/v1/models",
    "/v1/similarity",
    "/v1/search",
    "/v1/rerank",
    "/rerank",
    "/metrics",
}
GONE = 499  # the status, in metrics only, of a request whose client went away


class _Gone(Exception):
    """The client went away before its request was complete."""


class Gate:
    """An ASGI application around another one."""

    def __init__(self, app: App, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, answer = time.perf_counter(), _Answer(send)
        self.service.in_flight += 1
        try:
            await self._pass(scope, receive, answer)
        finally:
            self.service.in_flight -= 1
            path = scope["path"] if scope["path"] in PATHS else "other"
            self.service.metrics.answered(path, answer.status, time.perf_counter() - start)

    async def _pass(self, scope: Message, receive: Receive, answer: "_Answer") -> None:
        try:
            most = self._check(scope)
            body = await self._body(receive, most)
        except Refusal as refusal:
            await refusal.response()(scope, receive, answer)
        except _Gone:
            pass
        else:
            await self.app(scope, _replayed(body, receive), answer)

    def _check(self, scope: Message) -> int:
        """Refuse by what the head of a request says, and return how many bytes its body may have."""
        service, headers = self.service, dict(scope["headers"])
        admitted = service.admits(headers)
        if service.draining:
            raise Refusal(
                503, "The server is shutting down.", code="shutting_down", retry_after="1", connection="close"
            )
        if service.key is None and not admitted:
            raise Refusal(403, "Without an API key, this server answers only to localhost.", code="host_not_allowed")
        if service.key and scope["path"] not in OPEN and not admitted:
            message = "The API key is missing or wrong. Send it as: Authorization: Bearer KEY."
            raise Refusal(401, message, code="invalid_api_key", www_authenticate="Bearer")
        length, most = headers.get(b"content-length", b"0"), service.limits.max_body if admitted else 0
        if not length.isdigit() or int(length) > most:
            raise _too_large(most)
        if scope["method"] == "POST" and service.batcher.is_full:
            raise queue_full(service.batcher.retry_after)
        return most

    async def _body(self, receive: Receive, most: int) -> bytes:
        """Read the body, which a request of any method may have, up to a size and a time."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.service.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise _too_large(most, connection="close")
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            late = Refusal(408, "The body did not arrive in time.", code="body_too_slow", connection="close")
            raise late from None


def _too_large(most: int, **headers: str) -> Refusal:
    """More bytes than a body may have; 0 without the key."""
    if not most:
        return Refusal(413, "Without the API key, a request may have no body. Send the key, or no body.", **headers)
    return Refusal(
        413, f"The body has more than {most:,} bytes. Send fewer texts per request, or shorter ones.", **headers
    )


def queue_full(retry_after: int) -> Refusal:
    """Too many requests for now."""
    message = f"Too many requests are waiting. Try again in {retry_after} s."
    return Refusal(429, message, code="queue_full", retry_after=str(retry_after))


class _Answer:
    """Sends an answer, and keeps its status."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, GONE

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever comes: that the client has gone."""
    read = False

    async def replay() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
