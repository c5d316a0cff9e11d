"""Merging: after the last round the winner is merged with its base and with the best run of another route.

Nothing is trained, and the weights are chosen on the validation rows alone. A merged model usually keeps more of the
general ability of its base (WiSE-FT: Wortsman et al., CVPR 2022), so it is preferred in a tie: if it keeps nine tenths
of the winner's gain on the validation rows, and is less than one standard error of the paired difference below it (the
one-standard-error rule: Breiman et al., 1984). With few rows that error is large, and would let through half the base.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentloom.encoder import Encoder
from sentloom.encoder.merging import unlike
from sentloom.encoder.shared import shared_encoder
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Task
from sentloom.fitting.race import BEST, RaceContext, TrainedRun, against_base, best_run, run_plan
from sentloom.fitting.result import Merging, Run
from sentloom.pipeline.building import stage
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.references import PREFIX
from sentloom.pipeline.stages.stage import BASE

SHARES = (0.25, 0.5, 0.75)  # of the base; a quarter costs nothing where it was measured (docs/results-fit.md)
KEPT_GAIN = 0.9  # of the winner's, in a tie
OTHER_SHARES = (0.5, 0.25)  # of the best run of another route
ONE_ERROR = 0.6827  # the level of an interval that reaches one standard error to either side


def with_merged(context: RaceContext, runs: Sequence[TrainedRun]) -> list[TrainedRun]:
    """The runs of a race, and merged ones after them; the best of all is marked again."""
    best = best_run(runs)
    if best is None or not context.plan.merges:
        return list(runs)
    context.log("\nMerging ...")
    rung = max(one.run.rung for one in runs) + 1
    merged, took = list[TrainedRun](), 0.0
    for name, plan in list(_plans(context, runs, best))[: context.plan.merges]:
        if context.timed and len(merged) >= context.plan.merged:
            if _is_late(context, took):
                tried = "1 merged model is" if len(merged) == 1 else f"{len(merged)} merged models are"
                few = f"only {tried} tried" if merged else "nothing is merged"
                context.change(replace(context.plan, merges=len(merged)), few)
                break
            context.change(replace(context.plan, merged=len(merged) + 1))
        began = context.clock.now()
        quiet = replace(context, log=lambda line: None)  # about stages that are reused
        found = run_plan(quiet, Run(name, rung, 0, 0.0, None, None, None, None, ""), plan)
        took = context.clock.now() - began
        if found.result is None:
            context.log(f"{name} {found.run.verdict}")
            continue
        run = replace(found.run, steps=0, seconds=found.result.stages[-1]["seconds"], verdict="finished")
        merged.append(replace(found, run=run, route=best.run.route))
        context.log(f"{name}: {against_base(run)}")
    return _marked([*runs, *merged], choose(best, merged))


def choose(best: TrainedRun, merged: Sequence[TrainedRun]) -> TrainedRun:
    """The best merged model if it is better than the winner or ties with it, otherwise the winner."""
    found = best_run(merged)
    if found is None:
        return best
    kept = (found.run.difference or 0.0) >= KEPT_GAIN * (best.run.difference or 0.0)
    return found if kept and compare_averages(found.scores, best.scores, level=ONE_ERROR).high >= 0 else best


def _marked(runs: Sequence[TrainedRun], best: TrainedRun) -> list[TrainedRun]:
    """The runs with the verdict of the best on the right one."""
    verdicts = [BEST if one is best else "finished" if one.run.verdict == BEST else one.run.verdict for one in runs]
    return [replace(one, run=replace(one.run, verdict=verdict)) for one, verdict in zip(runs, verdicts, strict=True)]


def _is_late(context: RaceContext, took: float) -> bool:
    """Whether there is no time for one more, if the last one `took` so long: what follows must still be possible."""
    after = context.plan.ending - context.plan.merges * context.plan.scoring
    return context.clock.left < after * context.slower + max(took, context.plan.scoring * context.slower)


def _plans(context: RaceContext, runs: Sequence[TrainedRun], best: TrainedRun) -> Iterator[tuple[str, Plan]]:
    """Every merged model as a plan: the winner's stages and a merge, or two models that are there."""
    base, encoder = str(best.plan.base), best.encoder()
    if why := unlike(encoder, shared_encoder(base)):
        context.log(f"Not merged with the base: {why}")
    else:
        last = f"{PREFIX}{best.plan.stages[-1].name}"
        for share in SHARES:
            merge = stage("merge", name="merged", models=[last, BASE], weights=[1 - share, share])
            name = f"{best.run.route}, merged with {share:.0%} of the base"
            yield name, replace(best.plan, name=name, title=name, stages=(*best.plan.stages, merge))
    others = [one for one in runs if one.run.route != best.run.route and one.plan.base == best.plan.base]
    second = best_run([one for one in others if (one.run.difference or 0) > 0])
    if second is None or context.folds:  # models of all rows have seen every fold
        return
    if why := unlike(encoder, second.encoder()):
        context.log(f"Not merged with {second.run.route}: {why}")
        return
    assert best.result is not None
    assert second.result is not None
    models = [str(one.resolve()) for one in (best.result.model, second.result.model) if one]
    for share in OTHER_SHARES:
        name = f"{best.run.route}, merged with {share:.0%} of {second.run.route}"
        merge = stage("merge", name="merged", models=models, weights=[1 - share, share])
        yield name, replace(best.plan, name=name, title=name, stages=(merge,))


def merging_effect(runs: Sequence[TrainedRun], base: Encoder, general: Task, memory: Memory) -> Merging | None:
    """What merging changed: the best merged model beside the best trained one; None if nothing was merged."""
    tuned, merged = (best_run([one for one in runs if bool(one.route) is kind]) for kind in (False, True))
    if tuned is None or merged is None:
        return None
    models = (base, tuned.encoder(), merged.encoder())
    scores = [score_tasks(model, [general], memory)[0][general.main].value for model in models]
    return Merging(merged.run.route, merged.run.verdict == BEST, tuned.value, merged.value, general.name, *scores)
