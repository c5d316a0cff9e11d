"""What the server counts, for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sentloom.serving.batcher import Batcher

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


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
