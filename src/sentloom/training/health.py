"""Signs that a run has gone wrong, gauges of collapse and non-finite weights, and the journal that records them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from accelerate import Accelerator
from torch import Tensor

from sentloom.errors import disk_errors
from sentloom.files import new_file

MOST_COSINE = 0.99  # above it, sentences can no longer be told apart
MOST_UNIFORMITY = -0.04  # corresponds to a mean cosine of 0.99
LEAST_DEVIATION = 0.1  # likewise
LEAST_RANK = 2.0
LOST = 0.1  # a tenth of the best rank, or of the best spread (1 - mean cosine) if that was below 0.01
GAUGE_EVERY = 10  # steps, however often a run writes to its journal: gauges cost as much as a third of a step
WATCH_EVERY = 200  # steps between checks of the gauges, even if a run writes to its journal less often
JOURNAL = "log.jsonl"


@dataclass(frozen=True)
class Gauges:
    """How vectors of distinct sentences are spread. A collapsed encoder gives them all one direction, or few."""

    mean_cosine: float  # over all pairs
    effective_rank: float  # exp of the entropy of the centred vectors' singular values (Roy and Vetterli, 2007)
    deviation: float  # per dimension, of unit vectors, times sqrt(d): about 1 when spread evenly, 0 when collapsed
    uniformity: float  # log mean exp(-2 |x - y|^2) over pairs (Wang and Isola, 2020)

    def to_dict(self) -> dict[str, float]:
        """Plain values for the log."""
        return asdict(self)


def gauge(vectors: npt.NDArray[np.float32]) -> Gauges:
    """The gauges of (n, d) vectors; a single vector counts as collapsed."""
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


def best_of(first: Gauges, second: Gauges) -> Gauges:
    """The healthier value of each gauge."""
    return Gauges(
        mean_cosine=min(first.mean_cosine, second.mean_cosine),
        effective_rank=max(first.effective_rank, second.effective_rank),
        deviation=max(first.deviation, second.deviation),
        uniformity=min(first.uniformity, second.uniformity),
    )


def alarms(now: Gauges, best: Gauges, *, lost_rank: float = LOST) -> list[str]:
    """A message for each gauge that signals a collapse; `best` has the best value of each since the start.

    The effective rank may fall to the share `lost_rank` of its best. A base may have a mean cosine above 0.99 from the
    start: it collapses when it loses most of the spread it had.
    """
    messages = []
    cosine = MOST_COSINE if best.mean_cosine <= MOST_COSINE else 1 - LOST * (1 - best.mean_cosine)
    if now.mean_cosine > cosine:
        messages.append(f"mean cosine of distinct sentences {now.mean_cosine:.4f} (at best {best.mean_cosine:.4f})")
    uniformity = MOST_UNIFORMITY if best.uniformity <= MOST_UNIFORMITY else LOST * best.uniformity
    if now.uniformity > uniformity:
        messages.append(f"uniformity {now.uniformity:.3f} (at best {best.uniformity:.3f})")
    deviation = LEAST_DEVIATION if best.deviation >= LEAST_DEVIATION else LOST**0.5 * best.deviation
    if now.deviation < deviation:
        messages.append(f"deviation per dimension {now.deviation:.3f} (at best {best.deviation:.3f})")
    least = max(LEAST_RANK, lost_rank * best.effective_rank)
    if now.effective_rank < least <= best.effective_rank:
        messages.append(f"effective rank {now.effective_rank:.1f} (at best {best.effective_rank:.1f})")
    return messages


def overflowing(tensors: Mapping[str, Tensor]) -> list[str]:
    """The names of those whose norm is not finite: NaN, infinity, or values too large to be squared."""
    return [name for name, tensor in tensors.items() if tensor.is_floating_point() and not tensor.norm().isfinite()]


class Journal:
    """One line per record, each with its step. A resumed run drops the lines after the step it resumes from."""

    def __init__(self, folder: Path, accelerator: Accelerator, resumed_at: int) -> None:
        self.path, self.accelerator = folder / JOURNAL, accelerator
        if accelerator.is_main_process:
            lines = [line for line in read_journal(folder) if line["step"] <= resumed_at]
            with new_file(self.path) as part:
                part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def write(self, step: int, **values: Any) -> None:
        """Append a record and send its numbers to the trackers."""
        if self.accelerator.is_main_process:
            with disk_errors(self.path), self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
        self.accelerator.log(numbers, step=step)


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The records of a run, without a last line that was cut short by a kill."""
    path = folder / JOURNAL
    if not path.is_file():
        return []
    records = []
    for line in path.read_text("utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records
