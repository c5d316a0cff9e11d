"""What models are scored on, by name: an STS set, or a file of scored pairs or of pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sentloom.data.dataset import Dataset
from sentloom.data.opening import open_data
from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation import evaluate_sts, retrieval
from sentloom.evaluation.sts_sets import StsSet, StsSuite, load_set


@dataclass(frozen=True)
class Judge:
    """A set with a score from 0 to 100, higher is better; `metric` says which."""

    name: str
    metric: str
    data: Dataset
    score: Callable[[Encoder], float]


def judge(name: str, folder: str | None) -> Judge:
    """Find a set by name: `sts-b/dev` and its like in a data folder or on the hub, else a file."""
    if Path(name).exists() or name.startswith("embedded"):
        return _of_file(name, open_data(name))
    known = load_set(name, folder)
    data = read(known.source, shape=Shape.SCORED_PAIRS)
    return Judge(name, "Spearman x 100", data, _correlation(known))


def _of_file(name: str, data: Dataset) -> Judge:
    if data.shape is Shape.SCORED_PAIRS:
        first, second = (data.column(column).to_pylist() for column in ("sentence1", "sentence2"))
        one = StsSet(name, first, second, data.column("score").to_numpy(), [name] * len(data))
        return Judge(name, "Spearman x 100", data, _correlation(one))
    if data.shape is Shape.PAIRS:
        return Judge(name, "MRR@10 x 100", data, _search(data))
    raise InputError(name, f"the shape {data.shape}", "scored pairs or pairs", "name a set such as sts-b/dev")


def _correlation(one: StsSet) -> Callable[[Encoder], float]:
    def score(encoder: Encoder) -> float:
        average = evaluate_sts(encoder.encode, StsSuite((one,))).average()
        assert average
        return average.correlation.spearman

    return score


def _search(data: Dataset) -> Callable[[Encoder], float]:
    """Each anchor looks for its positive among the distinct positives."""
    anchors, positives = data.column("anchor").to_pylist(), data.column("positive").to_pylist()
    place = {text: number for number, text in enumerate(dict.fromkeys(positives))}
    right: dict[str, set[int]] = {}
    for anchor, positive in zip(anchors, positives, strict=True):
        right.setdefault(anchor, set()).add(place[positive])

    def score(encoder: Encoder) -> float:
        found = retrieval(
            lambda texts: encoder.encode(texts, role="query"),
            list(right),
            list(place),
            list(right.values()),
            encode_documents=lambda texts: encoder.encode(texts, role="document"),
        )
        return 100 * found.mrr

    return score
