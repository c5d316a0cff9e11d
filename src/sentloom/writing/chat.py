"""One request to /chat/completions, until it is answered: back-off, Retry-After, and limits of tokens and time."""

import json
import math
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Condition
from typing import Annotated, Any, Literal, Self

import anyio
import httpx2
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sentloom.errors import InputError, SentloomError, option
from sentloom.writing.answers import (
    BAD_COUNTS,
    BAD_TEXT,
    COMPRESSED,
    NO_COMPLETION,
    TOO_LONG,
    UNSTORABLE,
    Count,
    Reason,
)
from sentloom.writing.writer import Written

Messages = list[dict[str, str]]
ATTEMPTS = 8
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds; each wait is twice the one before
LONGEST_ASKED = 900.0  # seconds that a server may ask us to wait
PATIENCE = 120.0  # seconds for a whole answer, from connecting to its last byte
LARGEST = 1 << 22  # bytes of an answer
MOST_PARTS = 1000  # of a text in parts
FRAME = 64  # tokens that a server may add around the messages
AGAIN = (408, 409, 425, 429)  # and whatever is the server's fault: 500 and above
RESUME = "run the same command again to resume; all answers so far are kept"
SHOWN = 200  # characters of a server's message
STRETCH = 8  # characters of the key that are masked wherever a server repeats them


class EndpointError(SentloomError):
    """An endpoint that refuses, or does not answer; what was answered before is kept."""


class Refused(EndpointError):
    """A request that an endpoint does not accept as it is."""


class TokenLimit(SentloomError):
    """The next request might exceed the limit of tokens."""


class _Retry(Exception):
    """An attempt that failed, which another may not; `wait` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None, billed: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.billed = wait, billed


class _Unusable(_Retry):
    """An answer that cannot be kept. A text that cannot is no sign of a server in trouble: no wait."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"its answer was unusable ({reason})", 0.0 if reason == BAD_TEXT else None)
        self.reason = reason


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
        lost: Callable[[int, Reason | None], None] = lambda tokens, unusable: None,
    ) -> None:
        """`lost` receives what an attempt without a usable answer may have cost in tokens, and why it is unusable."""
        self._key, self._patience = key, patience
        self._url, self._host, self._first_wait = url, httpx2.URL(url).netloc.decode(), first_wait
        self._most, self._used, self._reserved = most_tokens, used, 0
        self._limit = option("max_tokens")  # here, since other threads do not know whether this is a command
        self._lost, self._changed, self._opened = lost, Condition(), ExitStack()
        self._quiet_until, self._stopped = 0.0, False

    def __enter__(self) -> Self:
        """Connections are kept open in a `with` block."""
        self._client = self._open()
        self._portal = self._opened.enter_context(start_blocking_portal())
        self._opened.callback(self._portal.call, self._client.aclose)
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _open(self) -> httpx2.AsyncClient:
        """Proxies of the environment are used for https alone: through a tunnel, in which they cannot read the key."""
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        limits = httpx2.Limits(max_connections=None)
        try:
            return httpx2.AsyncClient(
                headers=headers, timeout=None, limits=limits, trust_env=self._url.startswith("https://")
            )
        except (ImportError, ValueError, OSError, httpx2.InvalidURL):  # which may show a proxy's password
            problem = "a proxy or a file of certificates that the environment names cannot be used"
            fix = "correct or unset https_proxy, http_proxy, all_proxy and SSL_CERT_FILE"
            raise InputError(self._host, problem, "http://host:port", fix) from None

    def stop(self) -> None:
        """Let requests that are under way be the last attempts."""
        self._stopped = True

    def ask(self, body: dict[str, Any]) -> Written:
        """The answer to a request; an empty one, unfinished, if every attempt gives a text that cannot be stored."""
        for attempt in range(ATTEMPTS):
            self._wait_for_server()
            try:
                with self._reservation(body) as spend:
                    return self._attempt(body, spend)
            except _Retry as failed:
                last = failed
                wait = min(self._first_wait * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1.0)
                if self._stopped or attempt == ATTEMPTS - 1:
                    break
                if failed.wait is not None:
                    self._pause(failed.wait)
                else:
                    time.sleep(wait)
        if isinstance(last, _Unusable) and last.reason == BAD_TEXT and not self._stopped:
            return Written("", finished=False)
        raise EndpointError(self._host, f"{attempt + 1} attempts failed, the last because {last}", "an answer", RESUME)

    def _attempt(self, body: dict[str, Any], spend: "_Spending") -> Written:
        try:
            response, content = self._portal.call(self._post, body)
        except TimeoutError:
            raise _Retry(f"it did not answer within {self._patience:g} seconds") from None
        except httpx2.HTTPError as error:
            raise _Retry(f"of a network error ({type(error).__name__})") from None
        if response.status_code in AGAIN or response.status_code >= 500:
            asked = retry_after(response.headers.get("retry-after"))
            raise _Retry(f"it answered {response.status_code}", asked, billed=False)
        if response.status_code != 200:
            fix = "check the address, the model's name and the key; " + RESUME
            kind = Refused if response.status_code in (400, 422) else EndpointError
            raise kind(self._host, f"it answered {response.status_code}: {self._shown(content)!r}", "200", fix)
        if len(content) > LARGEST:
            raise _Unusable(TOO_LONG)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise _Unusable(COMPRESSED)
        answer, counted = parse_answer(content)
        if not counted:
            self._lost(0, BAD_COUNTS)
        answer = replace(answer, text=self.masked(answer.text))
        if not answer.tokens_written:  # the server does not count: the most that it can be
            answer = replace(answer, tokens_read=spend.tokens - body["max_tokens"], tokens_written=body["max_tokens"])
        spend.tokens = answer.tokens_read + answer.tokens_written
        return answer

    def masked(self, text: str) -> str:
        """A server's text without the key, which some repeat."""
        return mask(text, self._key) if self._key else text

    def _shown(self, content: bytes) -> str:
        """The start of a server's message."""
        message = content.decode("utf-8", "replace")
        return self.masked(message[: SHOWN + len(self._key or "")])[:SHOWN]

    async def _post(self, body: dict[str, Any]) -> tuple[httpx2.Response, bytes]:
        """The whole answer, as it comes: time-outs of single reads would never end one that drips."""
        content = bytearray()
        with anyio.fail_after(self._patience):
            async with self._client.stream("POST", self._url, json=body) as response:
                async for part in response.aiter_raw():
                    content += part
                    if len(content) > LARGEST:
                        break
        return response, bytes(content)

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
                self._lost(most, failed.reason if isinstance(failed, _Unusable) else None)
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
    read = sum(len(message["content"].encode()) + FRAME for message in body["messages"])
    return read + int(body["max_tokens"])


class _Part(BaseModel):
    type: Literal["text"]
    text: str


class _Message(BaseModel):
    content: str | Annotated[list[_Part], Field(max_length=MOST_PARTS)] | None


class _Choice(BaseModel):
    message: _Message
    finish_reason: object = None
    logprobs: object = None  # read leniently: an answer without them is as good


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=MOST_PARTS)]
    usage: object = None


class _Usage(BaseModel):
    model_config = ConfigDict(strict=True)

    prompt_tokens: Count = 0
    completion_tokens: Count = 0


def parse_answer(content: bytes) -> tuple[Written, bool]:
    """An answer with its token counts, and whether these are usable; an unusable answer may be a good one next time."""
    try:
        completion = _Completion.model_validate(json.loads(content))
    except ValidationError as error:
        halved = any(details["type"] == "string_unicode" for details in error.errors(include_input=False))
        raise _Unusable(BAD_TEXT if halved else NO_COMPLETION) from None
    except (ValueError, RecursionError):
        raise _Unusable(NO_COMPLETION) from None
    said, ended = completion.choices[0].message.content or "", completion.choices[0].finish_reason
    text = said if isinstance(said, str) else "".join(part.text for part in said)
    if UNSTORABLE.search(text):
        raise _Unusable(BAD_TEXT)
    try:
        usage, counted = _Usage.model_validate(completion.usage or {}), True
    except ValidationError:
        usage, counted = _Usage(), False
    chance = chance_of_true(completion.choices[0].logprobs)
    return Written(text, ended != "length", usage.prompt_tokens, usage.completion_tokens, chance), counted


class _Token(BaseModel):
    token: str
    logprob: Annotated[float, Field(le=0, allow_inf_nan=False)]

    def begins(self, word: str) -> bool:
        """Whether it is the word or a start of it."""
        letters = re.sub(r"\W", "", self.token).casefold()
        return bool(letters) and word.startswith(letters)


class _Position(_Token):
    top_logprobs: Annotated[list[_Token], Field(max_length=MOST_PARTS)] = []


class _LogProbs(BaseModel):
    content: Annotated[list[_Position], Field(max_length=MOST_PARTS)]


def chance_of_true(logprobs: object) -> float | None:
    """P(true) against P(false) at the first token of an answer; None if it is neither, or without probabilities."""
    try:
        positions = _LogProbs.model_validate(logprobs).content
    except ValidationError:
        return None
    said = next((place for place in positions if re.search(r"\w", place.token)), None)
    if said is None or not (said.begins("true") or said.begins("false")):
        return None
    tokens = {token.token: token for token in [said, *said.top_logprobs]}.values()
    true, false = (sum(math.exp(t.logprob) for t in tokens if t.begins(word)) for word in ("true", "false"))
    return true / (true + false)


def mask(text: str, key: str) -> str:
    """With *** for every stretch of at least eight characters of the key; a shorter key is masked as a whole.

    >>> mask("no such key: secret-0123, nor (cret-0123), but secret", "secret-0123")
    'no such key: ***, nor (***), but secret'
    """
    width = min(len(key), STRETCH)
    pieces = {key[at : at + width] for at in range(len(key) - width + 1)}
    shown, end = [], 0
    for at in range(len(text) - width + 1):
        if text[at : at + width] in pieces:
            shown += [text[end:at], "***"] if at >= end else []  # otherwise the stretch is longer
            end = at + width
    return "".join([*shown, text[end:]])


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
