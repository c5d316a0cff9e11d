"""Planning: score the bases, choose the one that the winner has to beat, and the routes that race.

The reference is the base that is best on the validation rows. The winner need not have started from it: being better
than a weak base is no reason to use a model. How many routes race follows from the budget (`clock`, `lengths`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentloom.errors import InputError, option
from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.task import Score
from sentloom.fitting.adapt import routes_from
from sentloom.fitting.base_choice import fast_enough, query_milliseconds, score_elsewhere
from sentloom.fitting.bases import Base, Teacher, find_teacher
from sentloom.fitting.clock import MOST_MERGES, RULE, routes_in, seconds_per_text, size_of_tasks
from sentloom.fitting.gate import expected_power, no_test_rows, refuse_no_room
from sentloom.fitting.lengths import Extent, Round, fits_in_steps, rounds_of_steps, rounds_of_time
from sentloom.fitting.making import Supply, supply_of
from sentloom.fitting.measures import Power
from sentloom.fitting.plan import FitPlan, Job
from sentloom.fitting.prepare import Prepared, fold_scores, per_training
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import Route, SkippedRoute
from sentloom.fitting.shapes import handler
from sentloom.fitting.tasks import Candidates, affordable_candidates
from sentloom.fitting.teachers import Teachers

NO_CHOICE = "without labels or a teacher nothing can choose among routes: the first one is trained"
NO_TIME, NO_STEPS = f"the budget has no time for it: {RULE}", "the budget has too few steps for another route"


@dataclass(frozen=True)
class Standing:
    """A base, and its scores on what chooses among the runs."""

    base: Base
    scores: tuple[Score, ...]

    @property
    def value(self) -> float:
        """The mean of its scores."""
        return sum(score.value for score in self.scores) / len(self.scores)


def candidates_in_time(budget: Budget, bases: Sequence[Base], texts: Sequence[str]) -> Candidates:
    """How many of some texts there is time to search, at the speed of the slowest base."""
    if budget.seconds is None:
        return Candidates()
    return affordable_candidates(max(seconds_per_text(base.encoder, texts) for base in bases), budget)


def score_bases(bases: Sequence[Base], prepared: Prepared, job: Job) -> tuple[Standing, ...]:
    """All bases on the validation rows, or on the folds; the clock learns how long that takes."""
    job.log("\nScoring the base ...")
    job.clock.size_of_run = size_of_tasks(prepared.choosing)
    job.clock.size_of_winner = size_of_tasks(prepared.proving) + 2 * size_of_tasks([prepared.general])
    standings = list[Standing]()
    for base in bases:
        with job.clock.scoring_of_run():
            standings.append(Standing(base, tuple(_choosing_scores(base, prepared, job.memory))))
    return tuple(standings)


def _choosing_scores(base: Base, prepared: Prepared, memory: Memory) -> list[Score]:
    if prepared.folds:
        return fold_scores([base.encoder] * len(prepared.folds), prepared.folds, memory)
    return main_scores(base.encoder, prepared.choosing, memory, show_progress=True)


def strongest(standings: Sequence[Standing]) -> Base:
    """The base with the best mean score; among equals the first."""
    return max(standings, key=lambda standing: standing.value).base


def new_plan(
    inputs: Mapping[str, Any], job: Job, prepared: Prepared, standings: Sequence[Standing], teachers: Teachers
) -> FitPlan:
    """Choose the reference and the routes. A recipe has its own routes and lengths."""
    latencies = _latencies(standings, job, prepared) if job.request.picks_base else {}
    reference = _chosen(standings, latencies, job, prepared) if latencies else strongest(standings)
    bases = [reference] if latencies else [standing.base for standing in standings]
    before = next(standing.scores for standing in standings if standing.base is reference)
    power = _power(reference, job, prepared) if prepared.proving else no_test_rows(before)
    plan = FitPlan(inputs, (), (), candidates=prepared.searched, power=power, reference=reference.path)
    plan = replace(plan, latencies=latencies)
    job.clock.lap("scoring the base")
    if prepared.recipe:
        own = prepared.recipe.routes
        return replace(plan, routes=own, rounds=(Round({route.name: () for route in own}, len(own), 0),))
    teacher = _cross_encoder(reference, job, prepared, teachers)
    routes, skipped = routes_from(bases, prepared, job.request, teacher, teachers.encoders)
    if prepared.blind:  # a score that a model can be trained to fool would choose
        skipped += [SkippedRoute(route.name, NO_CHOICE) for route in routes[1:]]
        routes = routes[:1]
    merges = 0 if prepared.blind else MOST_MERGES
    plan = replace(plan, skipped=tuple(skipped), merges=merges, trainings=1 + len(prepared.folds))
    again = int(job.request.force and prepared.blind)
    plan = replace(plan, speed=job.clock.speed, again=again)
    return _with_routes(plan, routes, job, per_training(job.request.parsed_budget, prepared.folds))


def _latencies(standings: Sequence[Standing], job: Job, prepared: Prepared) -> dict[str, float]:
    """By base, the milliseconds of a query, which are logged with its score."""
    latencies = dict[str, float]()
    for base, value in ((standing.base, standing.value) for standing in standings):
        latencies[base.name] = query_milliseconds(base.encoder, prepared.choosing)
        job.log(f"  {base.name}: {value:.2f}, and {latencies[base.name]:.1f} ms for a query")
    return latencies


def _chosen(standings: Sequence[Standing], latencies: Mapping[str, float], job: Job, prepared: Prepared) -> Base:
    """The best of the bases that are fast enough; without labels, the one that scores best elsewhere."""
    fast = fast_enough(latencies, job.request.max_latency)
    able = [standing for standing in standings if standing.base.name in fast]
    if not prepared.label_free:
        return strongest(able)
    language = prepared.inputs[0].language
    return max((standing.base for standing in able), key=lambda base: score_elsewhere(base.name, language))


def _power(base: Base, job: Job, prepared: Prepared) -> Power:
    """What the test rows can show. If they can show no gain, nothing is trained unless the user insists.

    With labels there is a classifier to be fitted, whatever the encoder can gain.
    """
    power = expected_power(base.encoder, prepared.proving, job.memory, label_free=prepared.blind)
    if not (job.request.force or any(handler(rows).has_labels for rows in prepared.training_rows)):
        refuse_no_room(power, ", ".join(fit_input.name for fit_input in prepared.inputs))
    return power


def _cross_encoder(reference: Base, job: Job, prepared: Prepared, teachers: Teachers) -> Teacher | None:
    request = job.request
    if not teachers.cross_encoders:
        return None
    name, *_ = teachers.cross_encoders
    asking = prepared.validation or [part for fold in prepared.folds for part in fold.parts]
    asked = [task for part in asking if part.labelled for task in part.tasks]
    teacher = find_teacher(name, asked, reference.encoder, job.memory, request.parsed_budget, job.log)
    job.clock.lap("testing the teacher")
    return teacher


def _with_routes(plan: FitPlan, routes: Sequence[Route], job: Job, budget: Budget) -> FitPlan:
    """The plan with as many routes as there is time for, or steps; `budget` is that of one training."""
    if budget.steps is None:
        first = routes_in(job.request.parsed_budget.seconds or 0.0)
        return replace(plan, routes=tuple(routes[:first]), spare=tuple(routes[first:]))
    job.plan, chosen = plan, list[Supply]()
    for route in routes:
        supply = supply_of(route, job, budget.steps)
        if isinstance(supply, Supply) and chosen and not fits_in_steps(_extents([*chosen, supply]), budget.steps):
            supply = SkippedRoute(route.name, NO_STEPS, for_time=True)
        if isinstance(supply, Supply):
            chosen.append(supply)
        else:
            plan = replace(plan, skipped=(*plan.skipped, supply))
    return replace(plan, routes=tuple(supply.route for supply in chosen), extents=_extents(chosen))


def _extents(supplies: Sequence[Supply]) -> dict[str, Extent]:
    return {supply.route.name: supply.extent for supply in supplies}


def with_rounds(plan: FitPlan, budget: Budget) -> FitPlan:
    """The plan with its rounds, once all data is there; `budget` is that of one training."""
    refuse_no_route(plan)
    extents = {route.name: plan.extents[route.name] for route in plan.routes}
    rounds = rounds_of_time(extents) if budget.steps is None else rounds_of_steps(extents, budget.steps)
    left = tuple(SkippedRoute(route.name, NO_TIME, for_time=True) for route in plan.spare)
    return replace(plan, extents=extents, rounds=rounds, spare=(), skipped=(*plan.skipped, *left))


def refuse_no_route(plan: FitPlan) -> None:
    """There must be at least one route."""
    if not plan.routes:
        why = "; ".join(f"{route.name}: {route.why}" for route in plan.skipped)
        dimensions = option("dimensions")
        fix = f"leave out {dimensions}" if dimensions in why else "add data of another shape"
        raise InputError("data", f"no method can learn from it ({why})", "", fix)
