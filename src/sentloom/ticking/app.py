"""The page on which people tick: this machine only, under a path that cannot be guessed, without any other host."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from sentloom.errors import SentloomError
from sentloom.serving.server import TimedProtocol, bind
from sentloom.serving.service import is_local_name
from sentloom.ticking.answers import Choice
from sentloom.ticking.session import Session

REPORT_STYLES = "report/templates/page.css"  # the page has the colours and the type of the report
LONGEST_BODY = 1_000  # bytes
INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)
GONE = {"error": "not found"}


class TickServer(uvicorn.Server):
    """Stops when it is asked to, by the page or by Ctrl-C."""

    def stop(self) -> None:
        """After the answers to all requests."""
        self.should_exit = True


def page() -> str:
    """The whole page: one file with its styles and its script."""
    source = files("sentloom")
    text = (source / "ticking/page.html").read_text("utf-8")
    return text.replace("/* REPORT STYLES */", (source / REPORT_STYLES).read_text("utf-8"))


def page_headers(content: str) -> dict[str, str]:
    """Nothing may run or be loaded but what is in the page itself, by the hash of its content."""
    hashes = {kind: f"'sha256-{_hash(inside)}'" for kind, inside in INLINE.findall(content)}
    policy = (
        f"default-src 'none'; style-src {hashes['style']}; script-src {hashes['script']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def build_app(session: Session, token: str, stop: Callable[[], None]) -> FastAPI:
    """The page, what it shows, and the answers that it sends. Without the token in its path, nothing is found."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    content = page()
    headers = page_headers(content)

    @app.middleware("http")
    async def only_with_token(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        first_part = request.url.path.split("/")[1]
        known = hmac.compare_digest(first_part.encode(), token.encode())
        if not known or not is_local_name(request.headers.get("host", "")):
            return JSONResponse(GONE, 404)
        return await proceed(request)

    @app.get(f"/{token}/")
    async def show_page() -> Response:
        return Response(content, media_type="text/html", headers=headers)

    @app.get(f"/{token}/state")
    async def show_state() -> Response:
        return JSONResponse(session.state())

    @app.post(f"/{token}/answer")
    async def take_answer(request: Request) -> Response:
        answer = _parsed(await _body(request))
        if answer is None:
            return JSONResponse({"error": "not an answer"}, 422)
        try:
            saved = session.answer(*answer)
        except SentloomError as error:  # a full disk, a changed file: it was not saved, and the page says so
            return JSONResponse({"error": str(error)}, 507)
        return JSONResponse(session.state(), 200 if saved else 409)

    @app.post(f"/{token}/back")
    async def go_back() -> Response:
        session.back()
        return JSONResponse(session.state())

    @app.post(f"/{token}/finish")
    async def finish() -> Response:
        stop()
        return JSONResponse(session.state())

    return app


async def _body(request: Request) -> Any:
    """The JSON of a request; None if it is too long or is none."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > LONGEST_BODY:
            return None
    try:
        return json.loads(data)
    except ValueError:
        return None


def _parsed(body: Any) -> tuple[int, Choice] | None:
    """The number of a question and a choice; None if it is no answer."""
    match body:
        case {"number": int(number), "choice": "left" | "right" | "both" | "neither" | "skip" as choice}:
            return None if isinstance(number, bool) else (number, choice)
        case _:
            return None


def serve(session: Session, started: Callable[[str], None], port: int = 0) -> None:
    """Serve the page until it is finished or Ctrl-C is pressed; `started` gets its address."""
    token = secrets.token_urlsafe(16)
    with bind("127.0.0.1", port) as listener:
        server = TickServer(_config(lambda: server.stop(), session, token))
        started(address(listener, token))
        server.run([listener])


def _config(stop: Callable[[], None], session: Session, token: str) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(session, token, stop),
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )


def address(listener: socket.socket, token: str) -> str:
    """The address of the page."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"
