"""`fit`, the main job: look at the data, try the routes that it permits, compare, choose or refuse, and tell.

MODEL/               the encoder, an ordinary sentence-transformers folder; not there if the gate refuses it
MODEL.fit/           all else
    plan.json        what is done: made once, so that a call that goes on does the same
    data/            the training rows of each input, without what is held out
    recipes/         every run as a recipe
    stages/ ...      what the runs gave, under content hashes (see `stages.running`)
    corpus.parquet   what `sentloom search MODEL` looks in
    story.json, report.html, report.md, plots/
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from sentloom.arena.gate import agreement
from sentloom.arena.gauges import K, shared_neighbours
from sentloom.arena.held_out import PANEL_TEXTS
from sentloom.arena.planning import (
    REVISION,
    Plan,
    Rates,
    bearable_routes,
    make_plan,
    pace_of,
    read_plan,
    seconds_a_step,
)
from sentloom.arena.preparing import (
    Ground,
    find_means,
    pairs_a_second,
    prepare_ground,
    refuse_nothing,
    stand_in_triplets,
    views_a_second,
    with_negatives,
    written_a_second,
)
from sentloom.arena.proving import Court, prove, refuse_no_prose
from sentloom.arena.racing import Course, Tell, Trained, race, score_chosen, twin, winner
from sentloom.arena.routes import Closed, Route, find_routes
from sentloom.arena.telling import tell_story
from sentloom.arena.wishes import Wishes
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError, TrainingStopped
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.files import new_folder
from sentloom.locks import alone_in
from sentloom.report.fit_report import write_report
from sentloom.report.model_card import facts_of, model_card
from sentloom.report.story import Measure, Stability, Story
from sentloom.stages import start_accelerator
from sentloom.stages.running import refuse_no_model


@dataclass(frozen=True)
class Fit:
    """What came of it: scores by name, where the model lies (None: refused), and where the report lies."""

    verdict: str  # written, refused or forced
    reason: str
    scores: Mapping[str, Measure]
    model: Path | None
    report: Path
    story: Story = field(repr=False)


def fit(
    data: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    base: str | Path = "embedded",
    budget: str = "10m",
    against: str | Path | Sequence[str | Path] = (),
    general: str | Path | None = None,
    force: bool = False,
    synthesizer: str | Path | None = None,
    seed: int = 1,
    shape: Shape | str | None = None,
    columns: Mapping[str, str | int] | None = None,
    strict: bool = False,
    tell: Tell = lambda line: None,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it is better than its base on held-out rows.

    `budget` is a time ("10m") or a number of steps ("400steps") over all routes. `against` names sets or files that
    decide in place of the held-out rows; `general` is a data folder with STS-B, to watch general ability on. `force`
    writes the model whatever the gate says. `shape` and `columns` ({"anchor": "title", "positive": "body"}) say what
    the rows of all files are, where their own columns do not. Some unusable rows are left out and reported (5%, or ten
    if that is more); with `strict` one is enough to refuse the data. `tell` gets what is said on the way: `print` shows
    it. A call that was stopped continues where it was.
    """
    wishes = Wishes(
        data=_names(data),
        output=Path(output),
        base=str(base),
        budget=budget,
        against=_names(against),
        general=Path(general) if general else None,
        force=force,
        synthesizer=str(synthesizer) if synthesizer else None,
        seed=seed,
        shape=Shape(shape) if shape else None,
        columns=columns,
        strict=strict,
    )
    refuse_before(wishes)
    with alone_in(wishes.folder):
        return _run(wishes, tell)


def _names(given: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))


def refuse_before(wishes: Wishes) -> None:
    """Say at once what would only show at the end."""
    if not wishes.data or not all(wishes.data):
        raise InputError("data", "none", "one file or more", "name what there is to learn from")
    if not all(wishes.against):
        raise InputError("--against", "an empty name", "a set or a file", "name one, or leave it out")
    assert wishes.means, "a budget that is understood"
    refuse_no_model(wishes.output)
    _refuse_foreign_model(wishes)


def _refuse_foreign_model(wishes: Wishes) -> None:
    """A model is replaced only if a fit wrote it, and never by one that starts from it."""
    output = wishes.output.resolve()
    if output.exists() and Path(wishes.base).resolve() == output:
        found = "the base itself"
    elif output.exists() and not output.with_name(f"{output.name}.fit").is_dir():
        found = "a model that no fit wrote"
    else:
        return
    raise InputError(str(wishes.output), found, "a free name", "choose another folder")


def _run(wishes: Wishes, tell: Tell) -> Fit:
    """From looking to telling. Times are told, and change nothing."""
    clock = _Clock()
    accelerator, base = start_accelerator((), wishes.folder), Encoder.load(wishes.base)
    ground, memory = prepare_ground(wishes, base, tell), open_memory(wishes.folder / "measured")
    if not wishes.force:
        refuse_no_prose(base, ground, memory)
    clock.lap("looking")
    plan = planned(wishes, ground, base, accelerator, tell)
    clock.lap("planning")
    tasks = ground.deciding(ground.choose)
    before = score_chosen(base, tasks, memory)
    course = Course(plan, wishes.base_place, wishes.seed, wishes.folder, tasks, before, memory, accelerator, tell)
    runs = race(course)
    best = winner(runs)
    if best is None:
        raise TrainingStopped("fit", "no route that ended well", "at least one", "look at what each run said above")
    clock.lap("training and choosing")
    proof = prove(Court(base, model_of(best), memory), ground, best.run.difference or 0.0)
    usable = proof.gate.passed or wishes.force
    agreed = stability(course, runs, best, ground) if usable and ground.label_free else None
    story = replace(tell_story(wishes, ground, plan, runs, best, proof, base), stability=agreed)
    clock.lap("proving and telling")
    return finish(wishes, clock.into(story), best)


def planned(wishes: Wishes, ground: Ground, base: Encoder, accelerator: Accelerator, tell: Tell) -> Plan:
    """The plan that was made before for the same inputs, or a new one; told either way."""
    path, inputs = wishes.folder / "plan.json", inputs_of(wishes, ground, base)
    plan = read_plan(path, inputs)
    if plan:
        tell(f"\nGoing on with the plan in {path}")
    else:
        plan = new_plan(inputs, wishes, ground, base, accelerator, tell)
        plan.write(path)
    for route in plan.routes:
        tell(f"  will try {route.name}: {route.why}")
    for closed in plan.closed:
        tell(f"  will not try {closed.name}: {closed.why}")
    for number, rung in enumerate(plan.rungs, 1):
        longest = max(sum(steps) for steps in rung.steps.values())
        tell(f"  round {number}: {rung.runs} of them, up to {longest:,} steps each")
    return plan


def inputs_of(wishes: Wishes, ground: Ground, base: Encoder) -> dict[str, Any]:
    """All that a plan depends on."""
    return {
        "revision": REVISION,
        "folder": str(wishes.folder.resolve()),  # which the recipes of a plan name
        "data": [material.data.sha256 for material in ground.materials],
        "base": base.fingerprint(),
        "budget": wishes.budget,
        "against": [task.sha256 for task in ground.against],
        "synthesizer": wishes.synthesizer,
        "seed": wishes.seed,
        "shape": wishes.shape,
        "columns": wishes.columns and dict(wishes.columns),
    }


def new_plan(
    inputs: Mapping[str, Any], wishes: Wishes, ground: Ground, base: Encoder, accelerator: Accelerator, tell: Tell
) -> Plan:
    """Find the routes, and measure what they and a scoring cost."""
    means = find_means(wishes, ground, base)
    routes, closed = find_routes(ground.bodies, means)
    tell("\nMeasuring what the open routes cost ...")
    start = time.perf_counter()
    score_tasks(base, ground.deciding(ground.choose))
    scoring = time.perf_counter() - start
    rates = Rates(
        views_a_second(ground, routes), pairs_a_second(ground, base), written_a_second(ground, wishes.synthesizer)
    )
    routes, dear = bearable_routes(routes, wishes.means, rates)
    closed = [*closed, *dear]
    refuse_nothing(routes, closed)
    with stand_in_triplets(routes, ground, Path(means.mined)) as timed:
        known: dict[str, float] = {}
        seconds = {
            route.name: seconds_a_step(route, wishes.base_place, wishes.seed, wishes.folder, accelerator, known)
            for route in timed
        }

    def plan_of(routes: Sequence[Route], closed: Sequence[Closed]) -> Plan:
        paces = {route.name: pace_of(route, seconds[route.name], rates) for route in routes}
        return make_plan(inputs, routes, closed, paces, wishes.means, scoring)

    plan = plan_of(routes, closed)
    if not any(route.mined for route in plan.routes):  # nothing is mined for a route that will not run
        return plan
    tell("Searching hard negatives ...")
    routes, without = with_negatives(routes, ground, base, Path(means.mined))
    return plan_of(routes, [*closed, *without])


def stability(course: Course, runs: Sequence[Trained], best: Trained, ground: Ground) -> Stability | None:
    """Where no labels decide: whether two seeds of the winner's route agree on the neighbours of held-out text."""
    texts = list(dict.fromkeys(text for part in ground.prove for _, _, text in part.data.sentences()))[:PANEL_TEXTS]
    first = next(one for one in runs if one.run.route == best.run.route and one.result)
    second = twin(course, best) if len(texts) > K else None
    if second is None:
        return None
    one, other = (model_of(each).encode(texts) for each in (first, second))
    return agreement(shared_neighbours(one, other))


def model_of(trained: Trained) -> Encoder:
    """What a run gave."""
    assert trained.result is not None
    return Encoder.load(str(trained.result.model))


def finish(wishes: Wishes, story: Story, best: Trained) -> Fit:
    """Write the report, and the model if it may be."""
    report = write_report(story, wishes.folder)
    if story.verdict != "refused":
        assert best.result is not None
        assert best.result.model is not None
        with new_folder(wishes.output) as part:
            shutil.copytree(best.result.model, part, dirs_exist_ok=True)
            (part / "README.md").write_text(model_card(story, facts_of(model_of(best))), "utf-8")
    model = None if story.verdict == "refused" else wishes.output
    return Fit(story.verdict, story.reason, {one.name: one for one in story.measures}, model, report, story)


class _Clock:
    """What took how long."""

    def __init__(self) -> None:
        self.last, self.laps = time.perf_counter(), dict[str, float]()

    def lap(self, name: str) -> None:
        """The time since the last lap has a name."""
        now = time.perf_counter()
        self.last, self.laps[name] = now, now - self.last

    def into(self, story: Story) -> Story:
        """The story with its cost."""
        return replace(story, cost={**self.laps, **story.cost})
