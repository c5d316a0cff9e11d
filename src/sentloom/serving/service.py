"""What a running server knows: its models, corpus, limits and state."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sentloom.serving.batcher import Batcher, QueueClosed
from sentloom.serving.corpus import Corpus
from sentloom.serving.metrics import Metrics
from sentloom.serving.models import ServedModel
from sentloom.serving.refusals import Refusal
from sentloom.serving.security import Key

TOKENISERS = 2  # threads that tokenise long texts; encoding has its own
SEARCHERS = 2  # threads that search, one of which may compute a map
PROBED_EVERY = 1.0  # seconds: more frequent health checks get the last answer


@dataclass(frozen=True)
class ServiceLimits:
    """What one request may contain, how long it may take to arrive, and how long a health check may take."""

    max_body: int = 4 << 20  # bytes
    max_inputs: int = 4096  # texts
    max_cells: int = 1_000_000  # of a similarity matrix
    max_found: int = 10_000  # results of a search, for all its queries together
    body_seconds: float = 10.0
    probe_seconds: float = 10.0  # after which a health check has failed


@dataclass
class Service:
    """The state of one server. `draining` is set once it shuts down; requests that began before are answered."""

    models: dict[str, ServedModel]
    batcher: Batcher
    corpus: Corpus | None = None
    key: Key | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    in_flight: int = 0
    draining: bool = False

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.batcher, lambda: self.in_flight)
        self.tokenisers = ThreadPoolExecutor(TOKENISERS, "tokenise")
        self.searchers = ThreadPoolExecutor(SEARCHERS, "search")
        self.mapping = asyncio.Lock()  # one map is computed at a time
        self._probing = asyncio.Lock()
        self._probed: tuple[float, dict[str, float]] = (-PROBED_EVERY, {})

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

    async def health(self) -> dict[str, float]:
        """For each model the cosine of its probe's vector with the expected one, at most a second old."""
        async with self._probing:
            if time.monotonic() - self._probed[0] >= PROBED_EVERY:
                found = {name: await self._probe(model) for name, model in self.models.items()}
                self._probed = time.monotonic(), found
        return self._probed[1]

    async def _probe(self, model: ServedModel) -> float:
        ids = model.tokenize([model.probe.text], "symmetric").ids
        try:
            async with asyncio.timeout(self.limits.probe_seconds):
                vectors = await self.batcher.submit(model.encode, ids, urgent=True)
        except (TimeoutError, QueueClosed):
            return 0.0
        return model.probe.cosine(vectors[0])
