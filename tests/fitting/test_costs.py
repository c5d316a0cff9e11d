"""What routes cost, from forecasts written by hand: what the budget has time for, and how long a run may be."""

from dataclasses import replace

import pytest
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.forecast import Forecast
from sentloom.engine.stages import Train
from sentloom.fitting.bases import Resources, Teacher, WriterResource
from sentloom.fitting.budget import FEWEST_MADE, FEWEST_WRITTEN, TimedRoute, Timer, limited, most_steps
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import SCHEDULE, Route, SkippedRoute, find_routes
from sentloom.fitting.training_sets import TrainingSet
from tests.fitting import small_base

RESOURCES = Resources("embedded", pooling="mean", dropout=0.1, translator=None, writer=WriterResource("writer"))


def timed(name, *shapes, rows=10_000, made_per_second=1.0, step=0.5, resources=RESOURCES):
    """A route whose data stages make so many rows per second and whose steps take so many seconds."""
    routes, _ = find_routes([TrainingSet(shape, rows, (f"{shape}.tsv",), "en") for shape in shapes], resources)
    route = next(route for route in routes if route.name == name)
    forecasts = [
        Forecast(part.name, part.method, rows, None, 7 * step, part.settings.batch, 7)
        if isinstance(part, Train)
        else Forecast(part.name, part.method, rows, None, rows / made_per_second)
        for part in route.stages
    ]
    return TimedRoute(route, tuple(forecasts), route.trains_on)


def test_a_fifth_of_the_time_is_for_views():
    limited_route = limited(timed("bootstrapped", Shape.TEXTS, made_per_second=25.0), Budget(200, None))
    assert limited_route.route.stages[0].data_share == 0.1  # 40 s of 200: 1000 of 10,000
    assert limited_route.pace.once == pytest.approx(40)
    assert limited_route.pace.most == (1000 // 64,)  # an epoch is what there are views of
    whole = limited(timed("bootstrapped", Shape.TEXTS, made_per_second=25.0), Budget(20_000, None))
    assert (whole.route.stages[0].data_share, whole.pace.once) == (1.0, 400)
    skipped = limited(timed("bootstrapped", Shape.TEXTS, made_per_second=25.0), Budget(20, None))
    assert skipped.why == f"the budget has time for 100 views, and it needs {FEWEST_MADE}"
    assert skipped.for_time


def test_pairs_that_negatives_are_mined_for():
    name = "pairs with mined negatives"
    limited_route = limited(timed(name, Shape.PAIRS, made_per_second=200.0), Budget(100, None))
    assert (limited_route.route.stages[0].options.rows, limited_route.pace.most) == (4000, (3 * 4000 // 32,))
    by_steps = limited(timed(name, Shape.PAIRS, made_per_second=200.0), Budget(None, 10))
    assert by_steps.route.stages[0].options.rows == 640  # as many as ten batches have, whatever the clock
    skipped = limited(timed(name, Shape.PAIRS, made_per_second=2.0), Budget(100, None))
    assert skipped.why == f"the budget has time for 40 hard negatives, and it needs {FEWEST_MADE}"


def test_sentences_that_a_writer_writes_for():
    limited_route = limited(timed("synthetic", Shape.TEXTS, made_per_second=20.0), Budget(100, None))
    assert limited_route.route.stages[0].options.rows == 400
    assert limited_route.pace.once == 20
    assert limited_route.pace.most == (60,)  # three epochs would be 18


@pytest.mark.parametrize(
    ("shape", "rows", "steps"),
    [
        (Shape.PAIRS, 40, 50),  # ten epochs of five
        (Shape.PAIRS, 100, 60),
        (Shape.CLASSIFICATION, 160, 60),  # three epochs
        (Shape.PAIRS, 8000, 3000),
        (Shape.TEXTS, 40, 5),
        (Shape.PARALLEL, 80, 100),
    ],
)
def test_few_labelled_rows_are_seen_more_often(shape, rows, steps):
    assert most_steps(stage("contrastive", name="learn", data="faq.tsv", batch=8), shape, rows) == steps


def test_making_takes_at_most_half_of_a_routes_share():
    shares = [
        limited(timed("synthetic", Shape.TEXTS, made_per_second=20.0), Budget(100, None), routes).route.stages[0]
        for routes in (2, 4, 5)
    ]
    assert [share.options.rows for share in shares] == [400, 250, 200]  # 20 s, an eighth and a tenth of the time
    skipped = limited(timed("synthetic", Shape.TEXTS, made_per_second=2.0), Budget(100, None))
    assert skipped.why == f"the budget has time for 40 texts to write for, and it needs {FEWEST_WRITTEN}"


def test_a_row_costs_what_later_stages_do_with_it_before_they_learn():
    """Per text 0.1 s to write, 0.05 s to search and 0.25 s for the teacher; 4 s for the vectors of all texts."""
    teaching = replace(RESOURCES, teacher=Teacher("reranker"))
    plain = timed("queries with a teacher", Shape.TEXTS, resources=teaching)
    written, mined, learned = plain.forecasts
    forecasts = (
        replace(written, seconds=1000.0, before=4.0),
        replace(mined, seconds=500.0),
        replace(learned, rows=10_000, before=2500.0),
    )
    limited_route = limited(replace(plain, forecasts=forecasts), Budget(300, None))
    write, mine, _ = limited_route.route.stages
    assert (write.options.rows, mine.options.rows) == (140, None)  # (60 s - 4 s) / 0.4 s
    assert limited_route.pace.once == pytest.approx(60)
    assert limited_route.pace.made == pytest.approx(4 + 140 * 0.15)  # the teacher's scores belong to the first run
    assert limited_route.pace.most == (10 * 140 // 64,)


def test_stages_share_the_time_and_have_their_own_epochs():
    pace = timed("simcse, then pairs", Shape.TEXTS, Shape.PAIRS).pace
    assert pace.seconds == (0.5, 0.5)
    assert pace.shares == pytest.approx((1 / 3, 2 / 3))
    assert pace.most == (10_000 // 64, 3 * 10_000 // 32)  # one epoch of raw text, three of pairs
    assert pace.once == 0
    assert pace.decays == (SCHEDULE["decay"],)  # the second stage does not start from the base


def test_real_stages_are_timed_once_and_a_route_that_says_nothing_trains_on_what_is_found(tmp_path):
    base, data = small_base.build_base(tmp_path), small_base.pairs(tmp_path / "faq.tsv", 40)
    mine = stage("mine", name="negatives", model=str(base), data=str(data))
    on_pairs = stage("contrastive", name="pairs", data=str(data), batch=8, max_length=16)
    on_mined = stage("contrastive", name="mined", data="stage:negatives", batch=8, max_length=16)
    absent = stage("views", name="views", data=str(data), kind="mask-fill", model=str(tmp_path / "not-here"))
    on_views = stage("contrastive", name="viewed", data="stage:views", batch=8, max_length=16)
    routes = [Route("one", "", (on_pairs,)), Route("two", "", (on_pairs, mine, on_mined))]
    routes.insert(1, Route("lacking", "", (absent, on_views)))
    timer = Timer(str(base), 1, Accelerator(cpu=True), scoring=5.0)
    first, lacking, second = map(timer.time, routes)
    assert isinstance(lacking, SkippedRoute)  # the others are timed all the same
    assert first.forecasts == second.forecasts[:1]  # the same measurement
    assert 5 < first.per_run < second.per_run  # scoring, and loading once or twice
    assert [(learnt.shape, learnt.rows) for learnt in second.trains_on] == [(Shape.PAIRS, 40), (Shape.TRIPLETS, 40)]
    assert first.pace.most == (10 * 40 // 8,)
    assert second.pace.once == second.forecasts[1].seconds > 0
