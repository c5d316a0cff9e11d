"""What a running server knows: its models, corpus, limits and state."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sentloom.serving.batcher import Batcher, QueueClosed
from sentloom.serving.corpus import Corpus
from sentloom.serving.metrics import Metrics
from sentloom.serving.models import ServedModel
from sentloom.serving.refusals import Refusal
from sentloom.serving.security import Key, is_local_name

READERS = 2  # threads that parse large bodies
TOKENISERS = 2  # threads that tokenise long texts; encoding has its own
SEARCHERS = 2  # threads that search
PROBED_EVERY = 1.0  # seconds: more frequent health checks get the last answer
LEAST_VALUES = 1 << 16  # that a body may have, however few texts are allowed: token ids get their own refusal


@dataclass(frozen=True)
class ServiceLimits:
    """What one request may contain, and how long its body, its answer and a health check may take."""

    max_body: int = 4 << 20  # bytes
    max_inputs: int = 4096  # texts
    max_cells: int = 1_000_000  # of a similarity matrix
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
