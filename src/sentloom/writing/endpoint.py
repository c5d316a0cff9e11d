"""Write with a model behind an OpenAI-compatible endpoint: many requests at a time, each answer kept as it arrives.

The key is read from the environment and only ever put into the request's header.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import httpx2
import numpy as np
from numpy.typing import NDArray

from sentloom.errors import InputError, option
from sentloom.writing.answers import ANSWERS, NO_CHANCE, UNKNOWN, Answers, Prices, Usage
from sentloom.writing.chat import FIRST_WAIT, PATIENCE, Chat, Messages, Refused
from sentloom.writing.writer import KINDS, Kind, Pair, SourceText, Wording, WritingPrompt, Written

if TYPE_CHECKING:
    from sentloom.writing.sampling import Sampling  # which imports PyTorch

KEY = "SENTLOOM_WRITER_KEY"
HEADER = re.compile("[!-~]+")  # what a header carries as it is
LOCAL = ("localhost", "127.0.0.1", "::1")
TOKEN = 4  # characters, about
EXPECTED_TOKENS = 24  # of a text that is written, about
VERDICT_TOKENS = 4
PROBABILITIES = {"logprobs": True, "top_logprobs": 5}  # asked for with a judgement
THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)  # of models that reason before they answer
JUDGING = 200  # characters around the two sentences of a judgement, about
JUDGEMENTS: Mapping[Kind, int] = {"query": 0, "paraphrase": 2, "entailment": 1, "contradiction": 1}  # of each text


def is_endpoint(name: str) -> bool:
    """Whether a writer's name is an address."""
    return name.startswith(("https://", "http://"))


@dataclass(frozen=True)
class EndpointOptions:
    """The address of an endpoint (https://host/v1), its model, and its limits; the key is not part of it."""

    url: str
    model: str | None
    max_tokens: int | None = None  # read and written, at most, over all runs on a ledger
    requests: int = 8  # at a time
    prices: Prices = UNKNOWN
    spent: int = 0  # tokens of other ledgers that count towards `max_tokens`
    timeout: float = PATIENCE
    own: str = ""  # of a server in this process: the hash of its model, which is its identity
    longest: int | None = None  # characters of a text that are sent

    def __post_init__(self) -> None:
        parts, key = _parts(self.url), os.environ.get(KEY)
        if not self.model:
            raise InputError(
                "writer", f"the endpoint {self.host} needs a model", "", f"name it: {option('writer_model', 'NAME')}"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            problem = "the address contains more than host and path, which plan and ledger would keep"
            raise InputError("writer", problem, "https://host/v1", f"put the key into the variable {KEY}")
        if parts.scheme == "http" and parts.hostname not in LOCAL and key:
            problem = f"the key in {KEY} would be sent to {self.host} unencrypted"
            raise InputError("writer", problem, "https://", f"use https, or unset {KEY}")
        if key and not HEADER.fullmatch(key):
            problem = f"the key in {KEY} has spaces, line breaks or characters beyond ASCII"
            raise InputError("writer", problem, "a key as your provider shows it", f"set {KEY} again")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError("max_tokens", f"{self.max_tokens} is too small", "1 or more", "leave it out for no limit")

    @property
    def host(self) -> str:
        """As in example.org:8080."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"

    @property
    def identity(self) -> str:
        """What the texts depend on, as far as it can be known."""
        if self.own:
            return self.own
        return f"{self.url.rstrip('/')} {self.model}"


def _parts(url: str) -> SplitResult:
    """The parts of an address that has a host, and a port only if it is a number that ports can have."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.port != 0 and httpx2.URL(url).host:
            return parts
    except (ValueError, httpx2.InvalidURL):
        pass
    raise InputError("writer", "the address has no valid host or port", "https://host/v1", "check the address")


def find_endpoint(
    writer: object,
    model: str | None,
    max_tokens: int | None,
    requests: int = 8,
    prices: Prices = UNKNOWN,
    spent: int = 0,
    timeout: float = PATIENCE,
) -> EndpointOptions | None:
    """The endpoint that a writer's name says; None for a model that runs here, which takes none of its options."""
    if isinstance(writer, str | Path) and is_endpoint(str(writer)):
        return EndpointOptions(str(writer), model, max_tokens, requests, prices, spent, timeout)
    options = {option("writer_model"): model, option("max_tokens"): max_tokens, "a price": any(prices) or None}
    if names := " and ".join(name for name, value in options.items() if value is not None):
        raise InputError("writer", f"{names} can only be given for an endpoint", "https://...", f"leave out {names}")
    return None


def requests_per_text(kinds: Iterable[Kind], candidates: int = 1) -> int:
    """How often an endpoint is asked to write for a text and to judge what it wrote."""
    return sum(candidates * (1 + JUDGEMENTS[kind]) for kind in kinds)


class Endpoint:
    """Texts depend on the server: the seed is sent, but a text that is asked for again may differ."""

    name = "endpoint"

    def __init__(
        self, options: EndpointOptions, sampling: "Sampling", folder: Path, first_wait: float = FIRST_WAIT
    ) -> None:
        """`folder` is the ledger's: all answers are kept there. `first_wait` is in seconds, after a failed attempt."""
        self._options, self._sampling = options, sampling
        self._answers = Answers(folder / ANSWERS)
        self._used = options.spent + self._answers.usage.total
        self._states_chances = True  # until the server refuses them
        self._chat = Chat(
            f"{options.url.rstrip('/')}/chat/completions",
            key=None if options.own else os.environ.get(KEY),
            most_tokens=options.max_tokens,
            used=self._used,
            first_wait=first_wait,
            patience=options.timeout,
            lost=self._answers.lose,
        )

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        """See `Writer`."""
        from sentloom.writing.sampling import sampling_keys

        names = [(source.row, KINDS.index(kind), source.candidate) for source in sources]
        keys = sampling_keys(self._sampling.seed, names)
        said = [prompt.messages(source.text[: self._options.longest]) for source in sources]
        asked = [
            self._body(messages, self._sampling.length, seed=int(key >> np.uint64(33)))
            for messages, key in zip(said, keys, strict=True)
        ]
        tidied = [_tidy(answer, prompt.label) for answer in self._all(asked)]
        # Masked again: without its thoughts, a text may contain the key in one piece.
        return [replace(answer, text=self._chat.masked(answer.text)) for answer in tidied]

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """P(true) by the probabilities of the first token, where the server states them.

        Without them, 1 for an answer that begins with "true" and 0 for any other: the summary says for how many.
        """
        asked = [self._body([_judging(pair)], VERDICT_TOKENS, seed=0, temperature=0.0) for pair in pairs]
        answers = self._all(asked, self._ask_verdict)
        return np.array([_said_true(answer) if answer.chance is None else answer.chance for answer in answers])

    def announcement(
        self, prompts: Mapping[Kind, Sequence[WritingPrompt]], texts: Sequence[str], candidates: int
    ) -> str:
        """What is about to be sent where, before the first request."""
        count = len(texts) * requests_per_text(prompts, candidates)
        used = self._estimate(prompts, texts, candidates)
        limit = f", at most {self._options.max_tokens:,}" if self._options.max_tokens else ""
        cost = f", about {self._options.prices.cost(used):,.2f} at your prices" if any(self._options.prices) else ""
        most = "up to " if self._answers.usage.total else ""  # what was answered before is not asked again
        dropped = f"; {self._answers.dropped:,} stored answers cannot be used" if self._answers.dropped else ""
        return (
            f"sending {most}{len(texts):,} texts to {self._options.host} ({self._options.model}): {most}{count:,} "
            f"requests, about {used.total:,} tokens{limit}{cost}; {self._used:,} tokens used so far{dropped}"
        )

    @staticmethod
    def _estimate(prompts: Mapping[Kind, Sequence[WritingPrompt]], texts: Sequence[str], candidates: int) -> Usage:
        characters = sum(map(len, texts))
        read = written = 0
        for kind, styles in prompts.items():
            prompt = sum(len(json.dumps(style.messages(""))) for style in styles) / len(styles)
            judged = JUDGEMENTS[kind]
            read += int((characters * (1 + judged) + len(texts) * (prompt + judged * JUDGING)) * candidates / TOKEN)
            written += len(texts) * candidates * (EXPECTED_TOKENS + judged * VERDICT_TOKENS)
        return Usage(read, written)

    def _body(self, messages: Messages, longest: int, *, seed: int, temperature: float | None = None) -> dict[str, Any]:
        how = self._sampling
        heat = 0.0 if how.greedy else how.heat
        limits = {} if how.greedy or temperature is not None else {"top_p": how.top_p}
        return {
            "model": self._options.model,
            "messages": messages,
            "max_tokens": longest,
            "temperature": heat if temperature is None else temperature,
            "seed": seed,
            **limits,
        }

    def _ask_verdict(self, body: dict[str, Any]) -> Written:
        """Ask for token probabilities too, unless the server has refused them."""
        answer = None
        if self._states_chances:
            try:
                answer = self._chat.ask({**body, **PROBABILITIES})
            except Refused:
                self._states_chances = False
        answer = answer or self._chat.ask(body)
        if answer.chance is None:
            self._answers.lose(0, NO_CHANCE)
        return answer

    def _all(
        self, bodies: Sequence[dict[str, Any]], ask: Callable[[dict[str, Any]], Written] | None = None
    ) -> list[Written]:
        """The answers, several requests at a time; after a failure those under way still arrive and are kept.

        Equal requests, such as judgements of equal texts, are one.
        """
        keys = [hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() for body in bodies]
        distinct = dict(zip(keys, bodies, strict=True))
        one = partial(self._one, ask or self._chat.ask)
        executor = ThreadPoolExecutor(self._options.requests)
        with self._chat:
            try:
                answers = dict(zip(distinct, executor.map(one, distinct.keys(), distinct.values()), strict=True))
                return [answers[key] for key in keys]
            except BaseException:
                self._chat.stop()
                raise
            finally:
                executor.shutdown(wait=True, cancel_futures=True)

    def _one(self, ask: Callable[[dict[str, Any]], Written], key: str, body: dict[str, Any]) -> Written:
        known = self._answers.get(key)
        if known is None:
            known = ask(body)
            self._answers.add(key, known)
        return known


def _said_true(answer: Written) -> float:
    return float(bool(re.match(r"\W*true", answer.text, re.IGNORECASE)))


def _judging(pair: Pair) -> dict[str, str]:
    premise, hypothesis = (" ".join(text.split()) for text in pair)
    start, middle, end = Wording().judge
    return {"role": "user", "content": f"{start}{premise}{middle}{hypothesis}{end}: answer with one word."}


def _tidy(answer: Written, label: str) -> Written:
    """The first line without its thoughts, a label in front of it ("Question: ") or quotes around it."""
    said = THOUGHTS.sub("", answer.text)
    first = next((line for line in said.splitlines() if line.strip()), "")
    text = " ".join(first.split())
    text = re.sub(rf"^{re.escape(label)}:\s*", "", text, flags=re.IGNORECASE) if label else text
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return Written(text[1:-1] if quoted else text, answer.finished, answer.tokens_read, answer.tokens_written)
