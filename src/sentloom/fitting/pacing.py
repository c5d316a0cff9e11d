"""What the clock makes of a plan: the share of time that a run gets, where its decay begins, and what is dropped."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sentloom.fitting.budget import LEAST_STEPS, most_expensive, round_costs
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.request import Budget
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.stages import Stage
from sentloom.progress import OutOfTime
from sentloom.training.schedules import stable_steps, total_steps

GRACE = 5.0  # seconds for up to ten steps before the decay, however late it is
LEAST_SHARE = 0.25  # of its planned training that a run must have time for, or it is dropped
SECONDS = Budget(1.0, None)  # of whatever size: costs are in seconds


def seconds_of(plan: FitPlan, number: int) -> dict[str, float]:
    """What the run of each route in one round (from 0) is expected to take."""
    return round_costs(plan.rungs, number, plan.paces, SECONDS)


def time_share(plan: FitPlan, number: int, names: Sequence[str], left: float) -> float:
    """The share of the seconds left that the first of these runs of a round (from 0) may take, by expected cost."""
    costs = {name: cost for name, cost in seconds_of(plan, number).items() if name in names}
    later = [
        most_expensive({name: cost for name, cost in seconds_of(plan, at).items() if name in names}, rung.runs)
        for at, rung in enumerate(plan.rungs)
        if at > number
    ]
    whole = sum(costs.values()) + sum(later)
    return left * costs[names[0]] / whole if whole else left


def _before(plan: FitPlan, name: str, number: int) -> tuple[int, ...]:
    return plan.rungs[number - 1].steps.get(name, ()) if number else ()


def _quotient(plan: FitPlan, name: str, number: int, share: float) -> float:
    """How many times its expected training a run has time for."""
    pace = plan.paces[name]
    besides = pace.each + (0.0 if number else pace.once)
    training = sum(pace.training(plan.rungs[number].steps[name], _before(plan, name, number)))
    return (share - besides) / max(training, 1e-9)


def is_hopeless(plan: FitPlan, name: str, number: int, share: float) -> bool:
    """Whether a run has time for so little that it is dropped."""
    return name in plan.paces and _quotient(plan, name, number, share) < LEAST_SHARE


def limits(plan: FitPlan, name: str, number: int, share: float) -> dict[str, float]:
    """By stage: the seconds after which its decay begins, whatever it has learned. A few steps are always trained.

    What has to be computed before the first step is counted with the first stage.
    """
    if name not in plan.paces:
        return {}
    pace, steps = plan.paces[name], plan.rungs[number].steps[name]
    times = max(0.0, _quotient(plan, name, number, share))
    fresh = pace.fresh(steps, _before(plan, name, number))
    found: dict[str, float] = {}
    for one, total, new, seconds in zip(plan.route(name).training, steps, fresh, pace.seconds, strict=True):
        stable = new - (total - stable_steps(total, one.settings.decay))
        before = pace.once - pace.made if not (number or found) else 0.0
        found[one.name] = before + max(times * stable * seconds, min(LEAST_STEPS * seconds, GRACE))
    return found


def fold_limits(plan: FitPlan, name: str, number: int, share: float) -> dict[str, float]:
    """The limits of a run without a fold, which also writes: at least half of the time for the rest is left for it."""
    rest = seconds_of(plan, number).get(name, 0.0) - plan.paces[name].made if name in plan.paces else 0.0
    writing = {one.name: share - rest / 2 for one in plan.route(name).makers if writes(one)}
    return {**writing, **(limits(plan, name, number, share) if math.isfinite(share) else {})}


def fold_key(plan: Plan, number: int) -> str:
    """The name of a training without a fold, which a merged model of it has as well."""
    trained = (f"{one.name} {one.settings.steps}" for one in plan.stages if one.settings)
    return f"{plan.base}, {', '.join(trained)}, fold {number}"


def writes(one: Stage) -> bool:
    """Whether a stage makes data with a writer."""
    return one.MODEL_KIND == "writer" and one.PRODUCES == "dataset"


def at_most(one: Stage, lengths: Mapping[str, int]) -> Stage:
    """A stage with fewer steps, or one that writes for fewer texts, if its name is among the given ones."""
    if one.name not in lengths:
        return one
    if one.settings is not None:
        return one.model_copy(update={"settings": one.settings.model_copy(update={"steps": lengths[one.name]})})
    return one.model_copy(update={"options": one.options.model_copy(update={"rows": lengths[one.name]})})


def shortened(plan: FitPlan, number: int, name: str, late: OutOfTime) -> FitPlan:
    """The plan if the decay of a stage begins at the step at which it was out of time."""
    steps = tuple(
        total_steps(late.step, one.settings.decay) if one.name == late.stage else known
        for one, known in zip(plan.route(name).training, plan.rungs[number].steps[name], strict=True)
    )
    return _with_rung(plan, number, {**plan.rungs[number].steps, name: steps})


def without_run(plan: FitPlan, number: int, name: str) -> FitPlan:
    """The plan without a route from one round on; from the first on, it is skipped."""
    if number == 0:
        plan = plan.without(name, "the time ran out before it could be trained", for_time=True)
    for at in range(number, len(plan.rungs)):
        plan = _with_rung(plan, at, {route: some for route, some in plan.rungs[at].steps.items() if route != name})
    return plan


def _with_rung(plan: FitPlan, number: int, steps: Mapping[str, tuple[int, ...]]) -> FitPlan:
    changed = [replace(rung, steps=steps) if at == number else rung for at, rung in enumerate(plan.rungs)]
    return replace(plan, rungs=tuple(changed))
