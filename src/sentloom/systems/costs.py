"""What a search costs: the time of a query, the speed of encoding, and memory."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from sentloom.encoder import Encoder
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.retrieval import SearchSet
from sentloom.evaluation.task import Task
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.system import Index
from sentloom.systems.sides import NoVectors, Search

TIMED_QUERIES, TIMED_TEXTS = 30, 128
FLOAT = 4  # bytes
Latency = tuple[float, float]  # seconds, p50 and p95


@dataclass(frozen=True)
class Costs:
    """What a search needs."""

    texts_per_second: float | None = None  # None: it encodes nothing
    latency: Latency | None = None  # of a query; None: nothing is searched
    weights_bytes: int = 0  # of its models, in memory; 0 for those behind an endpoint
    bytes_per_million: int = 0  # of vectors


def measure_costs(searches: Sequence[Search], tasks: Sequence[Task], memory: Memory) -> dict[str, Costs]:
    """The costs of each search; queries are timed in turns, so that whatever else runs slows down all of them."""
    searched = next((task.searched for task in tasks if task.searched), None)
    latencies = query_latencies(searches, searched, memory) if searched else {}
    texts = [text for task in tasks for of_role in task.texts.values() for text in of_role][:TIMED_TEXTS]
    speeds: dict[str, float] = {}
    costs = {}
    for search in searches:
        model, key = search.model, search.model.fingerprint()
        if not isinstance(model, NoVectors) and key not in speeds:
            began = time.perf_counter()
            model.encode(texts)
            speeds[key] = len(texts) / (time.perf_counter() - began)
        width = 0 if isinstance(model, NoVectors) else model.encode(texts[:1]).shape[1]
        weights = sum(map(_weights_of, _models_of(search)))
        costs[search.name] = Costs(speeds.get(key), latencies.get(search.name), weights, FLOAT * width * 1_000_000)
    return costs


def _models_of(search: Search) -> Iterable[object]:
    again = search.system.reranking
    return [search.model, *([CrossEncoder.load(again.model)] if again and again.weight else [])]


def _weights_of(model: object) -> int:
    """The bytes of the weights of a model that runs here."""
    if isinstance(model, Encoder):
        return sum(weights.numel() * weights.element_size() for weights in model.parameters())
    return model.weights_bytes if isinstance(model, CrossEncoder) else 0


def query_latencies(searches: Sequence[Search], searched: SearchSet, memory: Memory) -> dict[str, Latency]:
    """Seconds from the text of a query to its ten best results."""
    indexes = {}
    for search in searches:
        documents = vectors_of(search.model, searched.documents, "document", memory)
        indexes[search.name] = Index(searched.documents, documents, search.system).ready()
    taken: dict[str, list[float]] = {search.name: [] for search in searches}
    for query in searched.queries[: TIMED_QUERIES + 1]:
        for search in searches:
            began = time.perf_counter()
            indexes[search.name].find([query], search.model.encode([query], role="query"), 10)
            taken[search.name].append(time.perf_counter() - began)
    rest = {name: times[1:] or times for name, times in taken.items()}  # the first query is slower
    return {name: (median(times), float(np.percentile(times, 95))) for name, times in rest.items()}
