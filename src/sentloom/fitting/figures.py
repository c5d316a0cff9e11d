"""What the figures of the report show: loss curves, alignment and uniformity, cosines, and nearest neighbours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.encoder import Encoder
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.geometry import alignment
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.fitting.bases import Base, base_at
from sentloom.fitting.examples import shortened
from sentloom.fitting.race import TrainedRun
from sentloom.fitting.result import Curve, Histogram, NearestTexts, Trail
from sentloom.fitting.shapes import handler
from sentloom.fitting.tasks import HeldOut
from sentloom.search.nearest import top_k
from sentloom.search.vectors import encode_distinct
from sentloom.training.health import Gauges, alarms, gauge, read_journal

BINS = 40  # of the histogram of cosines
MOST_POINTS = 400  # of a curve
SAMPLES = 6  # sentences whose neighbours are shown
NEAREST = 4  # neighbours of each
MOST_TEXTS = 2_000  # to search for neighbours in
BASE = "base"  # the label of the start of a trail
LOST_RANK = 0.5  # a model that loses half of the effective rank of its base gets a warning


@dataclass(frozen=True)
class PairGeometry:
    """How the vectors of related pairs are arranged."""

    alignment: float  # the mean squared distance of the two sides of a pair
    gauges: Gauges  # over the distinct texts


def curves(trained: TrainedRun, folder: Path) -> tuple[Curve, ...]:
    """The loss along each stage of a run, from its journal."""
    assert trained.result is not None
    loss_curves = []
    for stage in (candidate for candidate in trained.result.stages if candidate["produces"] == "encoder"):
        lines = [line for line in read_journal(folder / stage["place"]) if "loss" in line]
        places = np.unique(np.linspace(0, len(lines) - 1, min(MOST_POINTS, len(lines))).astype(int))
        steps, loss = ([lines[place][name] for place in places] for name in ("step", "loss"))
        if steps:
            loss_curves.append(Curve(trained.run.route, stage["stage"], tuple(steps), tuple(loss)))
    return tuple(loss_curves)


def geometries(
    runs: Sequence[TrainedRun], bases: Sequence[Base], parts: Sequence[HeldOut], memory: Memory
) -> dict[str, dict[str, PairGeometry | None]]:
    """By route: the geometry of its base and of every run."""
    starts = {base.path: geometry(base.encoder, parts, memory) for base in bases}
    by_route: dict[str, dict[str, PairGeometry | None]] = {}
    for trained in runs:
        if trained.result:
            start = starts[base_at(bases, trained.plan.base).path]
            points = by_route.setdefault(trained.run.route, {BASE: start})
            points[_round(trained)] = geometry(trained.encoder(), parts, memory)
    return by_route


def _round(trained: TrainedRun) -> str:
    return "merged" if trained.route else f"round {trained.run.rung}"


def geometry(encoder: Encoder, parts: Sequence[HeldOut], memory: Memory) -> PairGeometry | None:
    """The geometry of a model on pairs that belong together, most of them cached; None if no pairs are known."""
    pairs = [pair for part in parts for pair in part.related]
    if not pairs:
        return None
    left, right = zip(*pairs, strict=True)
    vectors = encode_distinct(lambda texts: vectors_of(encoder, texts, "symmetric", memory), [*left, *right])
    lefts, rights = (np.stack([vectors[text] for text in side]) for side in (left, right))
    return PairGeometry(
        alignment(lefts, rights), gauge(np.stack([vectors[text] for text in dict.fromkeys([*left, *right])]))
    )


def trail(route: str, points: Mapping[str, PairGeometry | None]) -> Trail:
    """Alignment and uniformity along a route."""
    known = [(label, point.alignment, point.gauges.uniformity) for label, point in points.items() if point]
    return Trail(route, tuple(known))


def collapse_warnings(points: Mapping[str, PairGeometry | None], best: TrainedRun) -> Iterator[str]:
    """A warning if the vectors of the best run have collapsed compared with the base."""
    before, after = points[BASE], points[_round(best)]
    signs = alarms(after.gauges, before.gauges, lost_rank=LOST_RANK) if before and after else []
    if signs:
        yield f"The vectors have collapsed: {'; '.join(signs)}."


def histogram(before: Encoder, after: Encoder, parts: Sequence[HeldOut], memory: Memory) -> Histogram | None:
    """The cosines of pairs that belong together, and of the same texts paired differently."""
    pairs = [pair for part in parts for pair in part.related]
    if len(pairs) < 2:
        return None
    cosines = [_related_and_not(encoder, pairs, memory) for encoder in (before, after)]
    least = min(-0.2, *(float(values.min()) for both in cosines for values in both))
    edges = np.linspace(least, 1.0, BINS + 1)
    counts = [np.histogram(np.clip(values, least, 1.0), edges)[0].tolist() for both in cosines for values in both]
    return Histogram(tuple(edges.tolist()), *(tuple(count) for count in counts))


def _related_and_not(
    encoder: Encoder, pairs: Sequence[tuple[str, str]], memory: Memory
) -> tuple[npt.NDArray[np.float64], ...]:
    left, right = (vectors_of(encoder, list(side), "symmetric", memory) for side in zip(*pairs, strict=True))
    return cosine_of_pairs(left, right), cosine_of_pairs(left, np.roll(right, 1, axis=0))


def neighbours(before: Encoder, after: Encoder, parts: Sequence[HeldOut], memory: Memory) -> tuple[NearestTexts, ...]:
    """What a few test texts find among the others, before and after."""
    queries, documents = _queries_and_documents(parts)
    if len(documents) <= NEAREST:
        return ()
    nearest = []
    for encoder in (before, after):
        vectors = vectors_of(encoder, documents, "document", memory)
        numbers, cosines = top_k(vectors_of(encoder, queries, "query", memory), vectors, NEAREST + 1)
        rows = zip(queries, numbers.tolist(), cosines.tolist(), strict=True)
        nearest.append([_others(*row, documents) for row in rows])
    return tuple(NearestTexts(*row) for row in zip(map(shortened, queries), *nearest, strict=True))


def _others(
    query: str, numbers: Sequence[int], cosines: Sequence[float], documents: Sequence[str]
) -> tuple[tuple[float, str], ...]:
    """The nearest texts except the query itself."""
    near = [(cosine, documents[number]) for number, cosine in zip(numbers, cosines, strict=True)]
    return tuple((cosine, shortened(text)) for cosine, text in near if text != query)[:NEAREST]


def _queries_and_documents(parts: Sequence[HeldOut]) -> tuple[list[str], list[str]]:
    """A few queries, evenly from all test rows, and the texts to search in."""
    queries, documents = [], []
    for part in parts:
        asked, shown = handler(part.data).shown_columns
        queries += part.data.column(asked).to_pylist()
        documents += part.data.column(shown).to_pylist()
    distinct = list(dict.fromkeys(queries))
    places = np.linspace(0, len(distinct) - 1, min(SAMPLES, len(distinct))).astype(int)
    return [distinct[place] for place in places], list(dict.fromkeys(documents))[:MOST_TEXTS]
