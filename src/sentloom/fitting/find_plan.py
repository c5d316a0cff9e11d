"""The plan that a fit follows: made once, with the data that its routes learn from, and read again on resume."""

from collections.abc import Iterator, Sequence

from accelerate import Accelerator

from sentloom.evaluation.bench import Memory
from sentloom.fitting.bases import Base
from sentloom.fitting.budget import LEAST_STEPS, most_expensive, round_costs
from sentloom.fitting.clock import Clock
from sentloom.fitting.making import Making
from sentloom.fitting.plan import FitPlan, new_plan, plan_inputs, read_plan, training_budget, with_lengths
from sentloom.fitting.power import power_line
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Budget, Log, Request
from sentloom.progress import duration


def find_plan(
    request: Request,
    prepared: Prepared,
    bases: Sequence[Base],
    memory: Memory,
    accelerator: Accelerator,
    clock: Clock,
    log: Log,
) -> FitPlan:
    """The plan that was made before for the same inputs, or a new one; described either way."""
    path, inputs = request.folder / "plan.json", plan_inputs(request, prepared, bases)
    plan = read_plan(path, inputs)
    if plan:
        log(f"\nResuming the plan in {path}")
    else:
        plan = new_plan(inputs, request, prepared, bases, memory, accelerator, clock, log)
        clock.lap("planning")
        plan.write(path)
    if not plan.rungs:  # what the routes learn from has to be made first
        budget = training_budget(request, prepared)
        plan = Making(plan, request, budget, accelerator, clock, log).run()
        clock.lap("making data")
        plan = with_lengths(plan, budget, clock, again=prepared.label_free and request.force)
        plan.write(path)
    for line in plan_lines(plan, prepared, request):
        log(line)
    return plan


def plan_lines(plan: FitPlan, prepared: Prepared, request: Request) -> Iterator[str]:
    """The plan in words."""
    for route in plan.routes:
        yield f"  try {route.name}: {route.why}"
    for skipped in plan.skipped:
        yield f"  skip {skipped.name}: {skipped.why}"
    for number, rung in enumerate(plan.rungs[: plan.rounds], 1):
        longest = max(sum(steps) for steps in rung.steps.values())
        length = f"up to {longest:,} steps each" if longest else "as long as the recipe says"
        yield f"  round {number}: {rung.runs} {'routes' if rung.runs > 1 else 'route'}, {length}"
    for part in prepared.searching(plan.candidates).test:
        for task in part.tasks:
            if "of_documents" in task.settings:
                searched, there = len(task.texts["document"]), task.settings["of_documents"]
                sample = f" of {there:,}, a sample that verification has time for" if searched < there else ""
                yield f"  test queries of {part.name} search {searched:,} candidates{sample}"
    if not request.recipe:
        yield from (f"  {line}" for line in _budget_lines(plan, request.parsed_budget, 1 + len(prepared.folds)))
    if plan.power:
        yield f"  {power_line(plan.power)}"


def _budget_lines(plan: FitPlan, budget: Budget, trainings: int) -> Iterator[str]:
    planned, few = trainings * race_cost(plan, budget), f"a stage trains for at least {LEAST_STEPS} steps"
    if budget.seconds is not None:
        yield f"about {duration(planned)} for these runs, {duration(plan.ending)} for merging, verification and report"
        if planned + plan.ending > budget.seconds:
            yield f"that is more than the budget of {duration(budget.seconds)}: {few}"
    elif planned > (budget.steps or 0):
        yield f"{planned:,.0f} steps run, more than the budget of {budget.steps:,}: {few}"


def race_cost(plan: FitPlan, budget: Budget) -> float:
    """What all rounds take if the most expensive routes continue, in steps of each training or seconds."""
    rounds = enumerate(plan.rungs)
    return sum(most_expensive(round_costs(plan.rungs, at, plan.paces, budget), rung.runs) for at, rung in rounds)
