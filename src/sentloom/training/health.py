"""Signs of a run gone wrong: gauges of collapse, and numbers that are none."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

MOST_COSINE = 0.99  # above, sentences can no longer be told apart
MOST_UNIFORMITY = -0.04  # what a mean cosine of 0.99 comes to
LEAST_DEVIATION = 0.1  # likewise
LEAST_RANK = 2.0
LOST_RANK = 0.1  # of the rank at the start


@dataclass(frozen=True)
class Gauges:
    """How the vectors of some distinct sentences lie. A collapsed encoder gives them all one direction, or few."""

    mean_cosine: float  # over all pairs
    effective_rank: float  # exp of the entropy of the centred vectors' singular values (Roy and Vetterli, 2007)
    deviation: float  # per dimension, of unit vectors, times sqrt(d): about 1 when spread evenly, 0 when collapsed
    uniformity: float  # log mean exp(-2 |x - y|^2) over pairs (Wang and Isola, 2020)

    def to_dict(self) -> dict[str, float]:
        """Plain values for the log."""
        return asdict(self)


def gauge(vectors: npt.NDArray[np.float32]) -> Gauges:
    """The gauges of (n, d) vectors; a single one is as collapsed as can be."""
    if len(vectors) < 2:
        return Gauges(mean_cosine=1.0, effective_rank=1.0, deviation=0.0, uniformity=0.0)
    x = vectors.astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    cosines = (x @ x.T)[np.triu_indices(len(x), 1)]
    singular = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    shares = singular / max(singular.sum(), 1e-12)
    shares = shares[shares > 0]
    return Gauges(
        mean_cosine=float(cosines.mean()),
        effective_rank=float(np.exp(-(shares * np.log(shares)).sum())),
        deviation=float(x.std(axis=0).mean() * np.sqrt(x.shape[1])),
        uniformity=float(np.log(np.exp(-2 * (2 - 2 * cosines)).mean())),
    )


def alarms(now: Gauges, start: Gauges) -> list[str]:
    """What of the gauges says that the vectors collapse, in words; what was so from the start is no alarm."""
    found = []
    if now.mean_cosine > MOST_COSINE >= start.mean_cosine:
        found.append(f"mean cosine of distinct sentences {now.mean_cosine:.4f} (at the start {start.mean_cosine:.4f})")
    if now.uniformity > MOST_UNIFORMITY >= start.uniformity:
        found.append(f"uniformity {now.uniformity:.3f} (at the start {start.uniformity:.3f})")
    if now.deviation < LEAST_DEVIATION <= start.deviation:
        found.append(f"deviation per dimension {now.deviation:.3f} (at the start {start.deviation:.3f})")
    least = max(LEAST_RANK, LOST_RANK * start.effective_rank)
    if now.effective_rank < least <= start.effective_rank:
        found.append(f"effective rank {now.effective_rank:.1f} (at the start {start.effective_rank:.1f})")
    return found
