"""What a running server knows: who may ask, its models and corpus, its limits and state, and what it counts."""

import asyncio
import hashlib
import hmac
import ipaddress
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sentloom.errors import InputError
from sentloom.serving.batcher import Batcher, QueueClosed
from sentloom.serving.models import Corpus, ServedModel, ServedReranker
from sentloom.serving.schema import Refusal

VARIABLE = "SENTLOOM_API_KEY"
SHORTEST_KEY = 16
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
READERS = 2  # threads that parse large bodies
TOKENISERS = 2  # threads that tokenise long texts; encoding has its own
SEARCHERS = 2  # threads that search
RANKERS = 1  # threads that re-rank, each of which keeps all cores busy
PROBED_EVERY = 1.0  # seconds: more frequent health checks get the last answer
LEAST_VALUES = 1 << 16  # that a body may have, however few texts are allowed: token ids get their own refusal
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Key:
    """An API key, of which only the SHA-256 is kept."""

    def __init__(self, key: str) -> None:
        self._digest = hashlib.sha256(key.encode()).digest()

    def matches(self, authorization: bytes) -> bool:
        """Whether this is the header `Bearer KEY`. The time it takes does not depend on what is right in it."""
        scheme, _, key = authorization.partition(b" ")
        same = hmac.compare_digest(hashlib.sha256(key.strip()).digest(), self._digest)
        return same and scheme.lower() == b"bearer"


def read_key(file: Path | None, environment: Mapping[str, str] = os.environ) -> Key | None:
    """The key in a file, or else in the environment; None if neither is given."""
    where, key = VARIABLE, environment.get(VARIABLE)
    if file is not None:
        where = str(file)
        try:
            key = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(where, f"the key cannot be read: {error}", "a text file", "check the path") from None
    if key is None:
        return None
    if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        expected = f"at least {SHORTEST_KEY} printable ASCII characters without spaces"
        raise InputError(where, "the API key is not usable", expected, "create one with: openssl rand -hex 32")
    return Key(key)


def check_address(host: str, key: Key | None) -> None:
    """Refuse to listen beyond this machine without a key."""
    if key is None and not is_loopback(host):
        fix = f"set {VARIABLE} or --api-key-file, or leave out --host"
        raise InputError("--host", f"{host} can be reached from other machines, and no API key is set", "a key", fix)


def is_loopback(host: str) -> bool:
    """Whether every address of a host is this machine's own."""
    try:
        addresses = {ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        raise InputError("--host", f"{host} has no address", "an address of this machine", "correct it") from None
    return all(address.is_loopback for address in addresses)


def is_local_name(host: str) -> bool:
    """Whether a Host header names this machine: another name may be a web page's, pointed here to read answers."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower() in LOCAL_NAMES


@dataclass(frozen=True)
class ServiceLimits:
    """What one request may contain, and how long its body, its answer and a health check may take."""

    max_body: int = 4 << 20  # bytes
    max_inputs: int = 4096  # texts
    max_cells: int = 1_000_000  # of a similarity matrix
    max_reranked: int = 1_000  # documents of a query
    max_found: int = 10_000  # results of a search, for all its queries together
    body_seconds: float = 10.0
    answer_seconds: float = 30.0  # until the client has read its answer
    probe_seconds: float = 10.0  # after which a health check has failed

    @property
    def max_values(self) -> int:
        """The most strings, lists, objects and commas in the JSON of a body."""
        return max(LEAST_VALUES, 3 * self.max_inputs)


@dataclass
class Service:
    """The state of one server. `draining` is set once it shuts down; requests that began before are answered."""

    models: dict[str, ServedModel]
    batcher: Batcher
    corpus: Corpus | None = None
    reranker: ServedReranker | None = None
    key: Key | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    in_flight: int = 0
    answered: int = 0  # requests whose answer was sent in full
    cut_off: int = 0  # requests that the server gave up: their answer was not ready, or not read, in time
    draining: bool = False

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.batcher, lambda: self.in_flight)
        self.readers = ThreadPoolExecutor(READERS, "read")
        self.tokenisers = ThreadPoolExecutor(TOKENISERS, "tokenise")
        self.searchers = ThreadPoolExecutor(SEARCHERS, "search")
        self.rankers = ThreadPoolExecutor(RANKERS, "rank")
        self._probing = asyncio.Lock()
        self._probed: tuple[float, dict[str, float | None]] = (-PROBED_EVERY, {})
        self._wrong: dict[str, float] = {}  # the models whose last probe got another vector, and its cosine

    def admits(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request has the key or, if there is none, names this machine as its host."""
        if self.key is None:
            return is_local_name(headers.get(b"host", b"").decode("latin-1"))
        return self.key.matches(headers.get(b"authorization", b""))

    def model(self, name: str | None) -> ServedModel:
        """A model by name, by default the first."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            served = ", ".join(self.models)
            message = f"There is no model {name[:200]!r}. Choose one of: {served}."
            raise Refusal(404, message, param="model", code="model_not_found")
        return self.models[name]

    def searched(self) -> Corpus:
        """The corpus."""
        if self.corpus is None:
            raise Refusal(404, "No corpus is searched here. Start the server with --corpus DATA.", code="no_corpus")
        return self.corpus

    def ranking(self, name: str | None) -> ServedReranker:
        """The re-ranker, which a request may name."""
        if self.reranker is None:
            message = "No re-ranker is served here. Start the server with --reranker MODEL."
            raise Refusal(404, message, code="no_reranker")
        if name not in (None, self.reranker.name):
            message = f"There is no re-ranker {str(name)[:200]!r}. Name {self.reranker.name}, or none."
            raise Refusal(404, message, param="model", code="model_not_found")
        return self.reranker

    async def health(self) -> dict[str, float | None]:
        """For each model the cosine of its probe's vector with the expected one, at most a second old.

        None: the probe was not encoded in time.
        """
        async with self._probing:
            if time.monotonic() - self._probed[0] >= PROBED_EVERY:
                cosines = {name: await self._probe(model) for name, model in self.models.items()}
                for name, cosine in cosines.items():
                    self._judge(name, cosine)
                self._probed = time.monotonic(), cosines
        return self._probed[1]

    def _judge(self, name: str, cosine: float | None) -> None:
        if cosine is not None:  # a probe that came too late says nothing about the vectors
            self._wrong.pop(name, None)
            if cosine < self.models[name].probe.least:
                self._wrong[name] = cosine

    async def check_vectors(self, model: ServedModel) -> None:
        """Refuse to encode with a model whose probe got another vector, until the probe is right again."""
        if model.name in self._wrong:
            await self.health()
        if model.name in self._wrong:
            cosine = self._wrong[model.name]
            problem = f"{model.name} gives other vectors than it should: its probe has a cosine of {cosine:.3f}."
            raise Refusal(503, f"{problem} Restart the server.", code="other_vectors")

    async def _probe(self, model: ServedModel) -> float | None:
        ids = model.tokenize([model.probe.text], "symmetric").ids
        try:
            async with asyncio.timeout(self.limits.probe_seconds):
                vectors = await self.batcher.submit(model.encode, ids, urgent=True)
        except (TimeoutError, QueueClosed):
            return None
        return model.probe.cosine(vectors[0])


class Metrics:
    """Counters of one server."""

    def __init__(self, batcher: Batcher, in_flight: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sentloom_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "sentloom_request_seconds", "Time to answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.texts = Counter("sentloom_texts", "Texts encoded.", ["model"], registry=self.registry)
        self.tokens = Counter("sentloom_tokens", "Tokens encoded.", ["model"], registry=self.registry)
        self.truncated = Counter("sentloom_truncated_texts", "Texts truncated.", ["model"], registry=self.registry)
        self.registry.register(_BatcherMetrics(batcher, in_flight))

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def encoded(self, model: str, texts: int, tokens: int, truncated: int) -> None:
        """Count the texts of one request."""
        self.texts.labels(model).inc(texts)
        self.tokens.labels(model).inc(tokens)
        self.truncated.labels(model).inc(truncated)

    def page(self) -> bytes:
        """All of them as text."""
        return generate_latest(self.registry)


class _BatcherMetrics:
    """Reads the batcher's own counts when they are asked for."""

    def __init__(self, batcher: Batcher, in_flight: Callable[[], int]) -> None:
        self._batcher, self._in_flight = batcher, in_flight

    def collect(self) -> Iterator[Metric]:
        counts = self._batcher.counts
        yield GaugeMetricFamily("sentloom_queue_tokens", "Tokens that wait.", self._batcher.waiting_tokens)
        yield GaugeMetricFamily("sentloom_requests_in_flight", "Requests being answered.", self._in_flight())
        yield GaugeMetricFamily("sentloom_running_batches", "Batches that run now.", self._batcher.running)
        yield CounterMetricFamily("sentloom_batches", "Batches run.", counts.batches)
        yield CounterMetricFamily("sentloom_batch_texts", "Texts in all batches.", counts.texts)
        yield CounterMetricFamily("sentloom_batch_tokens", "Tokens in all batches.", counts.tokens)
        yield CounterMetricFamily("sentloom_batch_seconds", "Time of all batches.", counts.seconds)
        yield CounterMetricFamily("sentloom_dropped_requests", "Requests whose client went away.", counts.dropped)
