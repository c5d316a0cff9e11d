"""`fit`, the main job: read the data, try the methods that it supports, compare them, and write or refuse the best.

MODEL/               the encoder, an ordinary sentence-transformers folder; missing if the gate refuses it
MODEL.fit/           everything else
    plan.json        what is done: made once, so that a resumed call does the same
    data/            the rows of each input: train (in the form that methods take), validation and test
    recipes/         every run as a recipe
    stages/ ...      the results of the runs, under content hashes (see `pipeline.runner`)
    corpus.parquet   what `sentloom search MODEL` searches
    ticks.jsonl      what people answered, if they were asked (`sentloom tick`)
    report.json, report.html, report.md, plots/

Each step is a file of this package: request, bases, inputs (or given_routes), evaluation_sets, clusters, split,
languages, training_sets, searched and tasks (together: prepare), base_languages, reference, resources, routes, adapt,
budget and costs (together: plan), making (with plan: find_plan), race, merging, ending, verify (with uses, gate,
examples, threshold and stability), probing, by_language, by_dimension, and build_result (with result_figures and
advice). All of them share one clock.
"""

from dataclasses import replace
from pathlib import Path

from sentloom.encoder.device import fast_precision
from sentloom.errors import TrainingStopped
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.base_languages import with_languages
from sentloom.fitting.bases import base_at, load_bases
from sentloom.fitting.build_result import build_result
from sentloom.fitting.by_dimension import dimensions_in_time
from sentloom.fitting.by_language import language_measures, language_warnings
from sentloom.fitting.clock import Clock
from sentloom.fitting.ending import searching_in_time, time_for_scores
from sentloom.fitting.find_plan import find_plan
from sentloom.fitting.given_routes import GivenRoutes
from sentloom.fitting.merging import merging_effect, with_merged
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.probing import with_probes
from sentloom.fitting.race import BEST, RaceContext, race
from sentloom.fitting.reference import choosing_scores
from sentloom.fitting.request import Log, Request
from sentloom.fitting.result import FitResult
from sentloom.fitting.speed import measure_speed
from sentloom.fitting.stability import measure_stability
from sentloom.fitting.verify import GENERAL_ABILITY, Duel, is_tested, refuse_not_prose, verify
from sentloom.pipeline.runner import start_accelerator


def run(request: Request, log: Log, given: GivenRoutes | None = None) -> tuple[FitResult, Path]:
    """From inputs to a result, and the folder of the best model. `given` are the routes of a recipe.

    With a budget in steps, times are reported and change nothing. With a time budget, they may shorten what follows,
    which is written to plan.json first.
    """
    clock = Clock(None if given else request.parsed_budget.seconds)
    request = replace(request, bases=(given.base,), seed=given.seed) if given else request
    accelerator, bases = start_accelerator((), request.folder, fast_precision), load_bases(request)
    prepared = prepare_inputs(request, [base.encoder for base in bases], log, given)
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
    best = next((one for one in runs if one.run.verdict == BEST), None)
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
