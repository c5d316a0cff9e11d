"""One request to /chat/completions, until it is answered: back-off, Retry-After, and a limit of tokens."""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Condition
from typing import Any, Self

import httpx2

from sentloom.errors import SentloomError, option
from sentloom.writing.writer import Written

Messages = list[dict[str, str]]
ATTEMPTS = 8
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds; each wait is twice the one before
LONGEST_ASKED = 900.0  # seconds that a server may ask us to wait
PATIENCE = 120.0  # seconds for an answer
LARGEST = 1 << 22  # bytes of an answer
FRAME = 64  # tokens that a server may add around the messages
AGAIN = (408, 409, 425, 429)  # and whatever is the server's fault: 500 and above
RESUME = "run the same command again to resume; all answers so far are kept"
SHOWN = 200  # characters of a server's message


class EndpointError(SentloomError):
    """An endpoint that refuses, or does not answer; what was answered before is kept."""


class TokenLimit(SentloomError):
    """The next request might exceed the limit of tokens."""


class _Retry(Exception):
    """An attempt that failed, which another may not; `wait` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None, billed: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.billed = wait, billed


class Chat:
    """A client that several threads share. When the server asks to wait, all of them do."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        most_tokens: int | None = None,
        used: int = 0,
        first_wait: float = FIRST_WAIT,
        patience: float = PATIENCE,
        lost: Callable[[int], None] = lambda tokens: None,
    ) -> None:
        """`lost` receives the tokens that an attempt without an answer may have cost."""
        self._key, self._headers = key, {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = httpx2.Timeout(patience, pool=None)
        self._url, self._host, self._first_wait = url, httpx2.URL(url).netloc.decode(), first_wait
        self._most, self._used, self._reserved = most_tokens, used, 0
        self._limit = option("max_tokens")  # here, since other threads do not know whether this is a command
        self._lost, self._changed = lost, Condition()
        self._quiet_until, self._stopped = 0.0, False

    def __enter__(self) -> Self:
        """Connections are kept open in a `with` block."""
        self._client = httpx2.Client(headers=self._headers, timeout=self._timeout)
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def stop(self) -> None:
        """Let requests that are under way be the last attempts."""
        self._stopped = True

    def ask(self, body: dict[str, Any]) -> Written:
        """The answer to a request."""
        for attempt in range(ATTEMPTS):
            self._wait_for_server()
            try:
                with self._reservation(body) as spend:
                    return self._attempt(body, spend)
            except _Retry as failed:
                reason = str(failed)
                wait = min(self._first_wait * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1.0)
                if self._stopped or attempt == ATTEMPTS - 1:
                    break
                if failed.wait is not None:
                    self._pause(failed.wait)
                else:
                    time.sleep(wait)
        raise EndpointError(
            self._host, f"{attempt + 1} attempts failed, the last because {reason}", "an answer", RESUME
        )

    def _attempt(self, body: dict[str, Any], spend: "_Spending") -> Written:
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                content = self._content(response)
        except httpx2.HTTPError as error:
            raise _Retry(f"of a network error ({type(error).__name__})") from None
        if response.status_code in AGAIN or response.status_code >= 500:
            asked = retry_after(response.headers.get("retry-after"))
            raise _Retry(f"it answered {response.status_code}", asked, billed=False)
        if response.status_code != 200:
            fix = "check the address, the model's name and the key; " + RESUME
            raise EndpointError(self._host, f"it answered {response.status_code}: {self._shown(content)!r}", "200", fix)
        answer = parse_answer(content)
        if not answer.tokens_written:  # the server does not count: the most that it can be
            answer = replace(answer, tokens_read=spend.tokens - body["max_tokens"], tokens_written=body["max_tokens"])
        spend.tokens = answer.tokens_read + answer.tokens_written
        return answer

    def _shown(self, content: bytes) -> str:
        """The start of a server's message, without the key, which some servers repeat."""
        message = content.decode("utf-8", "replace")
        return (message.replace(self._key, "***") if self._key else message)[:SHOWN]

    @staticmethod
    def _content(response: httpx2.Response) -> bytes:
        content = b""
        for part in response.iter_bytes():
            content += part
            if len(content) > LARGEST:
                raise _Retry(f"its answer had more than {LARGEST:,} bytes")
        return content

    @contextmanager
    def _reservation(self, body: dict[str, Any]) -> Iterator["_Spending"]:
        """Room for the most tokens that a request can cost; waits while others hold what is left."""
        most = most_tokens(body)
        with self._changed:
            while self._most is not None and self._used + self._reserved + most > self._most:
                if not self._reserved:
                    problem = (
                        f"{self._used:,} of {self._most:,} tokens are used, and the next request may need {most:,}"
                    )
                    fix = f"raise {self._limit} and run the same command to continue: all answers are kept"
                    raise TokenLimit(self._limit, problem, "", fix)
                self._changed.wait()
            self._reserved += most
        spending = _Spending(most)
        try:
            yield spending
        except _Retry as failed:
            spending.tokens = most if failed.billed else 0
            if failed.billed:
                self._lost(most)
            raise
        except EndpointError:
            spending.tokens = 0
            raise
        finally:
            with self._changed:
                self._reserved -= most
                self._used += spending.tokens
                self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        if seconds > LONGEST_ASKED:
            raise EndpointError(self._host, f"it asks to wait {seconds:,.0f} seconds", "", f"wait, and {RESUME}")
        with self._changed:
            self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)

    def _wait_for_server(self) -> None:
        while (left := self._quiet_until - time.monotonic()) > 0:
            time.sleep(left)


class _Spending:
    """What a request has cost; until it is known, the most it can."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens


def most_tokens(body: dict[str, Any]) -> int:
    """The most tokens that a request can cost: a token has at least one byte."""
    read = sum(len(one["content"].encode()) + FRAME for one in body["messages"])
    return read + int(body["max_tokens"])


def parse_answer(content: bytes) -> Written:
    """The text of an answer with its token counts; what is not an answer may come right at another attempt."""
    try:
        values = json.loads(content)
        choice, usage = values["choices"][0], values.get("usage") or {}
        text, reason = choice["message"]["content"] or "", choice.get("finish_reason")
        counts = [max(0, int(usage.get(name) or 0)) for name in ("prompt_tokens", "completion_tokens")]
        return Written(str(text), reason != "length", *counts)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise _Retry("its answer was no chat completion") from None


def retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
