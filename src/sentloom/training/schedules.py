"""The learning rate as a pure function of the step: there is no scheduler state to save."""

import math


def rate(schedule: str, step: int, total: int, warmup: float) -> float:
    """The factor of the learning rate for an update, counted from 0.

    `linear` rises from 0 during the warm-up, then falls to 0; `constant-then-linear` stays at 1 instead of rising
    (as in GenSE's code); `cosine` rises, then falls along half a cosine; `constant` rises, then stays.
    """
    first = round(warmup * total)
    if step < first:
        return 1.0 if schedule == "constant-then-linear" else step / first
    if schedule == "constant":
        return 1.0
    done = (step - first) / max(1, total - first)
    return 0.5 * (1 + math.cos(math.pi * done)) if schedule == "cosine" else 1 - done
