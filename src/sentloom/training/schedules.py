"""The learning rate as a pure function of the step: there is no scheduler state to save."""

import math


def rate(
    schedule: str, step: int, total: int, warmup: float | int, decay: float = 0.1, decay_factor: float | None = None
) -> float:
    """The factor of the learning rate for an update, counted from 0; `warmup` is a share of the steps or their number.

    `linear` rises from 0 during the warm-up, then falls to 0, or by `decay_factor` per step (as in t5x);
    `constant-then-linear` stays at 1 instead of rising (as in GenSE's code); `cosine` rises, then falls along half a
    cosine; `constant` rises, then stays.
    `warmup-stable-decay` rises, stays, and falls to 0 in the last share `decay` of the steps (MiniCPM: Hu et al.,
    2024). If its warm-up is a number of steps, a longer run has the rates of a shorter one until that one's decay.
    """
    first = warmup if isinstance(warmup, int) else round(warmup * total)
    if schedule == "warmup-stable-decay":
        rising = step / first if step < first else 1.0
        return min(rising, (total - step) / max(1, round(decay * total)))
    if step < first:
        return 1.0 if schedule == "constant-then-linear" else step / first
    if schedule == "constant":
        return 1.0
    if decay_factor is not None:
        return max(0.0, 1 - decay_factor * (step - first))
    done = (step - first) / max(1, total - first)
    return 0.5 * (1 + math.cos(math.pi * done)) if schedule == "cosine" else 1 - done


def stable_steps(total: int, decay: float) -> int:
    """With `warmup-stable-decay`, the steps before the decay: a longer run takes the same ones."""
    return total - max(1, round(decay * total))


def total_steps(stable: int, decay: float) -> int:
    """The length of the shortest run with this many steps before its decay."""
    total = stable + 1
    while stable_steps(total, decay) < stable:
        total += 1
    return total
