"""`fit`, the main job: read the data, try the methods that it supports, compare them, and write or refuse the best.

MODEL/               the encoder, an ordinary sentence-transformers folder; missing if the gate refuses it
MODEL.fit/           everything else
    plan.json        what is done: made once, so that a resumed call does the same
    data/            the training rows of each input, without held-out rows
    recipes/         every run as a recipe
    stages/ ...      the results of the runs, under content hashes (see `pipeline.runner`)
    corpus.parquet   what `sentloom search MODEL` searches
    report.json, report.html, report.md, plots/

Each step is a file of this package: request, inputs (or recipe), split, training_sets and tasks (together: prepare),
resources, routes, budget and costs (together: plan), race, verify (with gate and stability), and build_result (with
result_figures and advice).
"""

import time
from dataclasses import replace
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.errors import TrainingStopped
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.build_result import build_result
from sentloom.fitting.plan import find_plan
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.race import RaceContext, best_run, main_scores, race
from sentloom.fitting.recipe import read_fit_recipe
from sentloom.fitting.request import Log, Request
from sentloom.fitting.result import FitResult
from sentloom.fitting.stability import measure_stability
from sentloom.fitting.verify import Duel, refuse_not_prose, verify
from sentloom.pipeline.runner import start_accelerator


def run(request: Request, log: Log) -> tuple[FitResult, Path]:
    """From inputs to a result, and the folder of the best model. Times are reported and change nothing."""
    clock = _Clock()
    recipe = read_fit_recipe(request, log) if request.recipe else None
    request = replace(request, base=recipe.base, seed=recipe.seed) if recipe else request
    accelerator, base = start_accelerator((), request.folder), Encoder.load(request.base)
    prepared = prepare_inputs(request, base, log, recipe)
    memory = open_memory(request.folder / "measured")
    if not request.force:
        refuse_not_prose(base, prepared, memory)
    clock.lap("reading")
    plan = find_plan(request, prepared, base, accelerator, log)
    clock.lap("planning")
    tasks = prepared.deciding(prepared.validation)
    before = main_scores(base, tasks, memory)
    context = RaceContext(
        plan, request.base_path, request.seed, request.folder, tasks, before, memory, accelerator, log
    )
    runs = race(context)
    best = best_run(runs)
    if best is None:
        raise TrainingStopped("fit", "every run failed", "at least one that ends", "see the messages of the runs above")
    clock.lap("training and selection")
    proof = verify(Duel(base, best.encoder(), memory), prepared, best.run.difference or 0.0)
    usable = proof.gate.passed or request.force
    stability = measure_stability(context, runs, best, prepared) if usable and prepared.label_free else None
    result = replace(build_result(request, prepared, plan, runs, best, proof, base), stability=stability)
    clock.lap("verifying and reporting")
    assert best.result is not None
    assert best.result.model is not None
    return replace(result, cost={**clock.laps, **result.cost}), best.result.model


class _Clock:
    """What took how long."""

    def __init__(self) -> None:
        self.last, self.laps = time.perf_counter(), dict[str, float]()

    def lap(self, name: str) -> None:
        """Give a name to the time since the last lap."""
        now = time.perf_counter()
        self.last, self.laps[name] = now, now - self.last
