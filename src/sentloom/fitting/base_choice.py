"""`--base auto`: all encoders of the catalogue that are on this machine are scored on the validation rows.

The best one is fitted, of those that encode a query within `--max-latency`; nothing is trained before that. Rows
without labels do not say which base is better: then the one that scores best on the sets of docs/models.md is fitted.
"""

import statistics
import time
from collections.abc import Mapping, Sequence

from sentloom.encoder import Encoder
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.measured import mean_score
from sentloom.errors import InputError, option
from sentloom.evaluation.task import Task

QUERIES = 16  # that are timed


def query_milliseconds(encoder: Encoder, tasks: Sequence[Task]) -> float:
    """How long an encoder needs for one query, the median."""
    texts = next(texts for task in tasks for role in ("query", "symmetric") if (texts := task.texts.get(role)))
    seconds = list[float]()
    for text in texts[:QUERIES]:
        start = time.perf_counter()
        encoder.encode([text], role="query")
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


def fast_enough(latencies: Mapping[str, float], limit: float | None) -> list[str]:
    """The bases within the limit, of their milliseconds; refuses if there is none."""
    fast = [name for name, latency in latencies.items() if limit is None or latency <= limit]
    if not fast:
        name, least = min(latencies.items(), key=lambda item: item[1])
        problem = f"no base on this machine encodes a query in {limit:g} ms; the fastest, {name}, needs {least:.1f} ms"
        raise InputError(option("max_latency"), problem, "", "allow more, or leave it out")
    return fast


def score_elsewhere(name: str, language: str | None) -> tuple[bool, float]:
    """What a base is measured to score in a language; those that were made for it come first."""
    score = mean_score(name, language) if language else None
    return language in CATALOGUE[name].languages, (score if score is not None else mean_score(name)) or 0.0
