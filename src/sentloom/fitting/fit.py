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
    teachers         what teaches, and how close a model is to it
    planning         score the bases, and choose the routes (routes, adapt), with `--base auto` also the base
                     (base_choice); `plan` is what comes of it
    making           make the data that routes learn from
    race             train every route (for how long: clock, lengths), score it, and merge the best
    verify           test the winner (gate), and find examples and a threshold (examples)
    system           test what words and a re-ranker add to its search
    build_result     everything that the report says (result)

`stored` reads what the folder of a fit keeps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sentloom.classify.classifier import Classifier
from sentloom.encoder.device import fast_precision
from sentloom.engine.runner import start_accelerator
from sentloom.errors import TrainingStopped
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.bases import Base, base_at, load_bases, with_languages
from sentloom.fitting.build_result import Findings, Raced, build_result
from sentloom.fitting.classifying import classify
from sentloom.fitting.clock import RULE, Clock
from sentloom.fitting.gate import power_line
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.lengths import LEAST_STEPS, cost
from sentloom.fitting.making import make_data
from sentloom.fitting.panel import PANEL_TEXTS
from sentloom.fitting.plan import FitPlan, Job, plan_inputs, read_plan
from sentloom.fitting.planning import Standing, candidates_in_time, new_plan, score_bases, with_rounds
from sentloom.fitting.prepare import Prepared, per_training, prepare_inputs
from sentloom.fitting.race import BEST, Race, first_run, measure_stability, merging_effect, race, with_merged
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.result import FitResult
from sentloom.fitting.routes import GivenRoutes
from sentloom.fitting.system import Kept, prove_system, with_system
from sentloom.fitting.teachers import (
    Teachers,
    find_teachers,
    refuse_nothing_to_learn_from,
    refuse_unjudged,
    with_agreement,
)
from sentloom.fitting.verify import (
    Duel,
    Trial,
    dimensions_in_time,
    language_measures,
    refuse_not_prose,
    verify,
    with_probes,
)
from sentloom.progress import duration


@dataclass(frozen=True)
class Done:
    """The result of a fit, the folder of the encoder that won, and the classifiers for the model to write."""

    result: FitResult
    winner: Path
    classifiers: tuple[Classifier, ...] = ()


def run(
    request: Request, log: Log, recipe: GivenRoutes | None = None, inputs: Sequence[FitInput] | None = None
) -> Done:
    """From inputs, which may have been read, to a result and a model.

    `recipe` has the routes of a recipe.

    With a budget in steps, times are reported and change nothing. With a time budget, they decide how long runs are,
    which is written to plan.json first.
    """
    clock = Clock(None if recipe else request.parsed_budget.seconds)
    request = replace(request, base=(recipe.base,), seed=recipe.seed) if recipe else request
    accelerator, bases = start_accelerator((), request.folder, fast_precision), load_bases(request)
    encoders = [base.encoder for base in bases]
    budget = Budget(None, None) if recipe else request.parsed_budget
    affordable = partial(candidates_in_time, budget, bases)
    with clock.watching_others():
        prepared = prepare_inputs(request, encoders, log, recipe, inputs, affordable)
    bases = with_languages(bases, prepared.inputs, log, warn=not request.picks_base)
    job = Job(request, open_memory(request.folder / "measured"), accelerator, clock, log)
    teachers = find_teachers(request)
    if not teachers.encoders:
        refuse_unjudged(prepared)
    if not (request.force or teachers.encoders):
        refuse_not_prose(encoders, prepared, job.memory)
    refuse_nothing_to_learn_from(request, prepared, teachers)
    clock.lap("reading")
    prepared, standings = make_plan(job, prepared, bases, teachers)
    reference = base_at(bases, job.plan.reference)
    before = next(standing.scores for standing in standings if standing.base is reference)
    racing = Race(job, reference.path, request.seed, prepared.choosing, before, log, prepared.folds)
    runs = with_merged(racing, race(racing))
    best = next((trained for trained in runs if trained.run.verdict == BEST), None)
    if best is None:
        raise TrainingStopped("fit", "every run failed", "at least one that ends", "see the messages of the runs above")
    clock.lap("training and selection")
    raced = Raced(standings, reference, runs, best)
    findings = prove(job, prepared, raced)
    log("Writing the report ...")
    result = build_result(job, prepared, raced, findings)
    result = with_system(result, findings.system, request, prepared.mined)
    clock.lap("second seed and report" if findings.stability else "report")
    precision = {"precision of training": "bf16" if accelerator.mixed_precision == "bf16" else "fp32"}
    result = replace(result, cost={**clock.laps, **result.cost, **precision})
    return Done(result, best.model, findings.classified.classifiers if findings.classified else ())


def make_plan(
    job: Job, prepared: Prepared, bases: Sequence[Base], teachers: Teachers
) -> tuple[Prepared, tuple[Standing, ...]]:
    """The plan that was made before for the same inputs, or a new one; described either way.

    Returns the data, with as many candidates as the plan says, and how the bases stand.
    """
    path, inputs = job.request.folder / "plan.json", plan_inputs(job.request, prepared, bases, teachers.identities)
    plan = read_plan(path, inputs)
    if plan:
        job.log(f"\nResuming the plan in {path}")
        job.plan, job.clock.speed = plan, plan.speed
        prepared = prepared if plan.candidates == prepared.searched else prepared.searching(plan.candidates)
    prepared = with_agreement(prepared, teachers, job.memory)
    standings = score_bases(bases, prepared, job)
    if not plan:
        job.change(new_plan(inputs, job, prepared, standings, teachers))
        job.clock.lap("planning")
    if not job.plan.rounds:  # what the routes learn from has to be made first
        budget = per_training(job.request.parsed_budget, prepared.folds)
        make_data(job, len(job.plan.routes), budget.steps)
        job.clock.lap("making data")
        job.change(with_rounds(job.plan, budget))
    for line in plan_lines(job, prepared):
        job.log(line)
    return prepared, standings


def prove(job: Job, prepared: Prepared, raced: Raced) -> Findings:
    """Test the winner of the race, and then measure what only informs."""
    job.log("\nVerifying on the test rows ...")
    base, best = raced.reference, raced.best
    duel = Duel(base.encoder, best.encoder(), job.memory, tuple(best.fold_encoders()))
    bases = len(raced.standings)
    how = "chosen from" if job.request.picks_base else "the best of"
    other = "its base" if bases == 1 else f"{base.name} ({how} {bases} bases)"
    proof = verify(duel, prepared, Trial(best.run, len(raced.runs), other, raced.choosing), job)
    classified = classify(job, prepared, duel, proof)
    job.clock.lap("classifier")
    written = proof.gate.passed or job.request.force or (classified is not None and classified.fitted)
    system = prove_system(Kept(duel.after, duel.folds) if written else Kept(duel.base, of_base=True), prepared, job)
    merging = job.if_time(
        "the effect of merging", lambda: merging_effect(raced.runs, base.encoder, prepared.general, job.memory)
    )
    proof = replace(proof, measures=with_probes(duel, prepared.test, proof.measures, job))
    by_language = language_measures(duel, prepared) if proof.tested else ()
    by_dimension = dimensions_in_time(job, duel, prepared.proving) if prepared.proving else ()
    job.clock.lap("verification")
    stability = None
    if prepared.blind and job.request.force:
        stability = measure_stability(job, first_run(raced.runs, best), prepared.test_texts[:PANEL_TEXTS])
    return Findings(proof, classified, system, merging, stability, by_language, by_dimension)


def plan_lines(job: Job, prepared: Prepared) -> Iterator[str]:
    """The plan in words."""
    plan = job.plan
    for route in plan.routes:
        yield f"  try {route.name}: {route.why}"
    for skipped in plan.skipped:
        yield f"  skip {skipped.name}: {skipped.why}"
    if job.clock.timed:
        yield from (f"  {line}" for line in _time_lines(job))
    else:
        yield from _step_lines(plan)
    for part in prepared.test:
        for task in part.tasks:
            if there := task.settings.of_documents:
                searched = len(task.texts["document"])
                sample = f" of {there:,}, a sample that verification has time for" if searched < there else ""
                yield f"  test queries of {part.name} search {searched:,} candidates{sample}"
    if not (job.request.recipe or job.clock.timed):
        yield from (f"  {line}" for line in _budget_lines(plan, job.request.parsed_budget))
    if plan.power:
        yield f"  {power_line(plan.power)}"


def _time_lines(job: Job) -> Iterator[str]:
    """How the time is shared."""
    routes, clock = len(job.plan.routes), job.clock
    yield f"{RULE}: {routes} {'routes race' if routes > 1 else 'route races'}"
    whole = duration(max(0.0, clock.training))
    if routes == 1:
        yield f"it trains for {whole}"
    else:
        yield f"they share the first half of {whole} equally, and the best one continues with the second half"
    yield f"{duration(clock.merging + clock.ending)} are kept for merging, verification and the report"


def _step_lines(plan: FitPlan) -> Iterator[str]:
    for number, planned in enumerate(plan.rounds, 1):
        longest = max(sum(steps) for steps in planned.steps.values())
        length = f"up to {longest:,} steps each" if longest else "as long as the recipe says"
        yield f"  round {number}: {planned.runs} {'routes' if planned.runs > 1 else 'route'}, {length}"


def _budget_lines(plan: FitPlan, budget: Budget) -> Iterator[str]:
    planned = plan.trainings * cost(plan.rounds, plan.extents)
    if planned > (budget.steps or 0):
        few = f"a stage trains for at least {LEAST_STEPS} steps"
        yield f"{planned:,.0f} steps run, more than the budget of {budget.steps:,}: {few}"
