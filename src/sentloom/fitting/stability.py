"""Stability: where no labels decide, whether two seeds of the best route agree on the neighbours of held-out text."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.significance import average_interval
from sentloom.evaluation.task import Score
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import RaceContext, TrainedRun, train_with_next_seed
from sentloom.fitting.result import Stability
from sentloom.fitting.tasks import PANEL_TEXTS
from sentloom.search.nearest import top_k

K = 10  # neighbours that are compared


def measure_stability(
    context: RaceContext, runs: Sequence[TrainedRun], best: TrainedRun, prepared: Prepared
) -> Stability | None:
    """Train the best route again with another seed, and compare neighbours; None if there are too few texts."""
    texts = list(dict.fromkeys(text for part in prepared.test for _, _, text in part.data.sentences()))[:PANEL_TEXTS]
    route = best.route or best.run.route
    first = next(one for one in runs if one.run.route == route and one.result)
    second = train_with_next_seed(context, route) if len(texts) > K else None
    if second is None:
        return None
    one, other = (trained.encoder().encode(texts) for trained in (first, second))
    return agreement(shared_neighbours(one, other))


def agreement(shares: Numbers) -> Stability:
    """The mean share with its interval over texts."""
    score = Score("mean", shares[:, None])
    low, high = average_interval([score])
    return Stability(score.value, low, high, len(shares), K)


def shared_neighbours(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating], k: int = K) -> npt.NDArray[np.float64]:
    """For each text, the share of its k nearest neighbours that two models agree on; row i of both is text i.

    1 if they agree on all of them; for n texts, chance gives k / (n - 1).
    """
    if len(a) != len(b) or len(a) <= k:
        problem = f"{len(a)} and {len(b)} vectors for k = {k}"
        raise InputError("shared neighbours", problem, "vectors of the same texts, more than k", "take more texts")
    pairs = zip(_neighbours(a, k), _neighbours(b, k), strict=True)
    return np.array([len(set(one) & set(other)) / k for one, other in pairs])


def _neighbours(vectors: npt.NDArray[np.floating], k: int) -> list[list[int]]:
    """The k nearest others of each vector."""
    found, _ = top_k(vectors, vectors, k + 1)
    return [[number for number in row if number != own][:k] for own, row in enumerate(found.tolist())]
