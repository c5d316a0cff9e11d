"""Answers that no honest endpoint sends, from a seed: bytes on a connection that is closed afterwards."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tests.writing.chat_server import Fault, Handler, dripping, reset

VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 2**31, 2**63, 2**70, 10**400, 1e308, float("inf"), float("nan"), "", "text", "\ud800", "\udfff x"),
    *("a\0b", "\x1b[2J", [], {}, [[]], [None], [1] * 2000, {"type": "text"}, [{"type": "text", "text": "part"}]),
    *([{"type": "text", "text": 1}], [{"type": "refusal", "refusal": "no"}], "[{'type': 'text', 'text': 'a'}]", "x" * 100_000),
)  # fmt: skip
PLACES = (
    *((), ("choices",), ("choices", 0), ("choices", 0, "message"), ("choices", 0, "message", "content")),
    *(("choices", 0, "finish_reason"), ("usage",), ("usage", "prompt_tokens"), ("usage", "completion_tokens")),
)
CODES = (100, 101, 103, 201, 204, 206, 301, 302, 307, 400, 401, 404, 408, 418, 429, 500, 503, 599, 600, 999, 99, 0)
HEADERS = (
    *("Retry-After: nan", "Retry-After: inf", "Retry-After: -7", "Retry-After: 1e400", "Retry-After: soon"),
    *("Retry-After: Fri, 31 Dec 9999 23:59:59 -2359", "Location: http://[::1", "Location: \xff\xfe", "Location: javascript:1"),
    *("Set-Cookie: a=\xff; expires=Fri, 99 Xxx 99999 99:99:99; domain=;;", "Content-Encoding: gzip", "Content-Encoding: \xff"),
    *("Transfer-Encoding: chunked", "Content-Length: -1", "Content-Length: 1, 2", "Content-Type: text/html; charset=\xff"),
    *("Transfer-Encoding: identity", "Connection: upgrade", "X" * 200_000 + ": y", "no colon", "\0: nul"),
)  # fmt: skip


def completion(text: str = "The parcel is there.") -> dict[str, Any]:
    usage = {"prompt_tokens": 5, "completion_tokens": 4}
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}], "usage": usage}


def sent(content: bytes, code: int = 200, *headers: str, length: int | None = None) -> bytes:
    lines = [
        f"HTTP/1.1 {code} Status",
        *headers,
        f"Content-Length: {len(content) if length is None else length}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1") + content


def replaced(rng: random.Random) -> bytes:
    """A completion with a wrong value somewhere."""
    place, value, values = rng.choice(PLACES), rng.choice(VALUES), completion()
    if not place:
        return sent(json.dumps(value).encode())
    inner: Any = values
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return sent(json.dumps(values).encode())


def scrambled(rng: random.Random) -> bytes:
    """The bytes of a completion, with some changed, left out or repeated."""
    content = bytearray(json.dumps(completion()).encode())
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(content))
        content[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
    return sent(bytes(content[: rng.randint(1, 2 * len(content))]))


def framed(rng: random.Random) -> bytes:
    """A completion with a hostile status, header or length."""
    content = json.dumps(completion()).encode()
    code = rng.choice((200, *CODES))
    headers = rng.sample(HEADERS, rng.randint(0, 2))
    return sent(content, code, *headers, length=rng.choice((None, 0, 3, len(content) - 1, 10**6, 10**30)))


def garbage(rng: random.Random) -> bytes:
    return rng.choice((b"", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-OpenSSH\r\n", b"\r\n" * 99)) + rng.randbytes(
        rng.randint(0, 200)
    )


def echo(rng: random.Random, key: str) -> bytes:
    """The key, or a part of it, in a text, a header or an error."""
    first = rng.randrange(len(key) // 2)
    part = key[first : rng.randint(first + 8, len(key))] if rng.random() < 0.7 else key
    text = rng.choice((part, f"the key is {part}.", f"{part[:4]}<think></think>{part[4:]}", part * 3))
    return sent(json.dumps(completion(text)).encode(), rng.choice((200, 200, 200, 400, 503)), f"X-Key: {key}")


def raw(content: bytes, ending: Callable[[Handler], None] | None) -> Fault:
    def answers(handler: Handler) -> None:
        handler.close_connection = True
        with suppress(OSError):  # the client has gone
            handler.wfile.write(content)
            handler.wfile.flush()
            if ending:
                ending(handler)

    return answers


def hostile(number: int, seed: int, key: str) -> Iterator[Fault]:
    """`number` answers, the same ones for the same seed."""
    rng = random.Random(seed)
    for at in range(number):
        content = rng.choice((replaced, replaced, scrambled, framed, garbage, lambda rng: echo(rng, key)))(rng)
        cut = content[: rng.randrange(len(content) + 1)] if rng.random() < 0.1 else content
        yield dripping(content) if at % 25 == 24 else raw(cut, reset if rng.random() < 0.2 else None)
