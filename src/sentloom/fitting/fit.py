"""`fit`, the main job: read the data, try the methods that it supports, compare them, and write or refuse the best.

MODEL/               the encoder, an ordinary sentence-transformers folder; missing if the gate refuses it
MODEL.fit/           everything else
    plan.json        what is done: made once, so that a resumed call does the same
    data/            the rows of each input: train (in the form that methods take), validation and test
    recipes/         every run as a recipe
    stages/ ...      the results of the runs, under content hashes (see `engine.runner`)
    corpus.parquet   what `sentloom search MODEL` searches
    ticks.jsonl      what people answered, if they were asked (`sentloom tick`)
    report.json, report.html, report.md, plots/

Each step is a file of this package, in this order:

    request          the arguments
    bases            load the bases; their languages, and what they can learn with
    prepare          read the rows (inputs), find those that belong together (clusters), divide them (split), write what
                     trains (training_sets), and build what is asked (tasks, evaluation_sets)
    plan             find the routes (routes, adapt), time them and set their lengths (budget, clock)
    making           make the data that routes learn from
    race             train and score every route, merge the best
    ending, verify   test the winner (gate) as far as there is time, and find examples and a threshold (examples)
    build_result     everything that the report says (result)

All of them share one clock. `compare_fits` compares the results of two fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.encoder.device import fast_precision
from sentloom.engine.runner import start_accelerator
from sentloom.errors import TrainingStopped
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.bases import Base, base_at, load_bases, with_languages
from sentloom.fitting.budget import LEAST_STEPS, measure_speed, most_expensive, round_costs
from sentloom.fitting.build_result import build_result
from sentloom.fitting.clock import Clock
from sentloom.fitting.ending import dimensions_in_time, searching_in_time, time_for_scores
from sentloom.fitting.gate import power_line
from sentloom.fitting.making import Making
from sentloom.fitting.plan import (
    FitPlan,
    choosing_scores,
    new_plan,
    plan_inputs,
    read_plan,
    training_budget,
    with_lengths,
)
from sentloom.fitting.prepare import Prepared, prepare_inputs
from sentloom.fitting.race import BEST, RaceContext, measure_stability, merging_effect, race, with_merged
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.result import FitResult
from sentloom.fitting.routes import GivenRoutes
from sentloom.fitting.verify import (
    GENERAL_ABILITY,
    Duel,
    is_tested,
    language_measures,
    language_warnings,
    refuse_not_prose,
    verify,
    with_probes,
)
from sentloom.progress import duration


def run(request: Request, log: Log, recipe: GivenRoutes | None = None) -> tuple[FitResult, Path]:
    """From inputs to a result, and the folder of the best model. `given` are the routes of a recipe.

    With a budget in steps, times are reported and change nothing. With a time budget, they may shorten what follows,
    which is written to plan.json first.
    """
    clock = Clock(None if recipe else request.parsed_budget.seconds)
    request = replace(request, base=(recipe.base,), seed=recipe.seed) if recipe else request
    accelerator, bases = start_accelerator((), request.folder, fast_precision), load_bases(request)
    prepared = prepare_inputs(request, [base.encoder for base in bases], log, recipe)
    bases = with_languages(bases, prepared.inputs, log)
    memory = open_memory(request.folder / "measured")
    if not request.force:
        refuse_not_prose([base.encoder for base in bases], prepared, memory)
    clock.lap("reading")
    plan = find_plan(request, prepared, bases, memory, accelerator, clock, log)
    prepared = prepared.searching(plan.candidates)
    reference = base_at(bases, plan.reference)
    tasks, folds = prepared.choosing, prepared.folds
    before = choosing_scores(reference, prepared, memory)
    context = RaceContext(
        plan, reference.path, request.seed, request.folder, tasks, before, memory, accelerator, clock, log, folds
    )
    runs = with_merged(context, race(context))
    best = next((trained for trained in runs if trained.run.verdict == BEST), None)
    if best is None:
        raise TrainingStopped("fit", "every run failed", "at least one that ends", "see the messages of the runs above")
    clock.lap("training and selection")
    log("\nVerifying on the test rows ...")
    duel = Duel(reference.encoder, best.encoder(), memory, tuple(best.fold_encoders()))
    speed = measure_speed(duel.after, prepared.texts) if context.timed else None
    prepared, has_time = searching_in_time(context, prepared, speed), time_for_scores(context, speed)
    other = "its base" if len(bases) == 1 else f"{reference.name} (the best of {len(bases)} bases)"
    proof = verify(duel, prepared, best.run, len(runs), other, has_time)
    general = prepared.general if has_time(GENERAL_ABILITY, [prepared.general]) else None
    merging = merging_effect(runs, reference.encoder, general, memory) if general else None
    measures = with_probes(duel, prepared.test, proof.measures, context.has_planned_time)
    by_language = language_measures(duel, prepared) if is_tested(prepared, has_time) else ()
    by_dimension = dimensions_in_time(context, duel, prepared.proving)
    clock.lap("verification")
    usable = proof.gate.passed or request.force
    stability = measure_stability(context, runs, best, prepared) if usable and prepared.label_free else None
    log("Writing the report ...")
    proof = replace(proof, measures=measures)
    result = build_result(request, prepared, context.plan, runs, best, proof, bases, memory)
    warnings = (*result.warnings, *language_warnings(by_language), *context.plan.warnings)
    result = replace(result, by_language=by_language, by_dimension=by_dimension, warnings=warnings)
    clock.lap("second seed and report" if stability else "report")
    assert best.result is not None
    assert best.result.model is not None
    tested = best.result.model.relative_to(request.folder).as_posix()
    result = replace(result, stability=stability, merging=merging, changes=context.plan.changes, tested=tested)
    precision = {"precision of training": "bf16" if accelerator.mixed_precision == "bf16" else "fp32"}
    return replace(result, cost={**clock.laps, **result.cost, **precision}), best.result.model


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
            if there := task.settings.of_documents:
                searched = len(task.texts["document"])
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
