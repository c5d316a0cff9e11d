"""Making data before the race, with real models: what comes of it, what the clock and the token limit stop."""

import math
from dataclasses import replace

import pytest
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.fitting.budget import Pace
from sentloom.fitting.making import LATE, NO_TOKENS, Making, bounded, time_to_make
from sentloom.fitting.plan import read_plan
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import SkippedRoute
from tests.fitting import small_base
from tests.fitting.test_costs import timed
from tests.fitting.test_plan import planned, still
from tests.fitting.test_race import PACE, plan_for, route
from tests.fitting.test_request import request
from tests.writing.chat_server import chat_server
from tests.writing.small_causal import build_small_causal

MINED = "pairs with mined negatives"
LOOSE = {"finished": False, "round_trip": 0, "language": False, "copied": 1.0, "length": 6}
NO_TIME, STEPS = Budget(1e-4, None), Budget(None, 5000)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("writer"))


def make(plan, asked, budget=STEPS, clock=None, log=lambda line: None):
    """With NO_TIME every limit has passed at once, although the clock, which stands still, leaves time for the race."""
    clock = clock or still(None if budget is STEPS else 1e6)
    return Making(plan, asked, budget, Accelerator(cpu=True), clock, log).run()


def mined(base, data, count):
    plain = timed(MINED, Shape.PAIRS, rows=count, made_per_second=1e9)
    mine, learn = plain.route.stages
    mine = mine.model_copy(update={"model": str(base), "data": (str(data),)})
    return replace(plain, route=replace(plain.route, stages=(mine, learn)))


def writing(folder, model, block=40, **options):
    """The route `queries` for 60 of 80 texts."""
    plain = timed("queries", Shape.TEXTS, rows=80, made_per_second=1e9)
    source = {"data": str(small_base.prose(folder / "raw.txt", 80)), "rows": 60, "block": block, "shuffle": True}
    how = {"kinds": ["query"], "encoder": "none", **options}
    written = stage("synthesize", name="written-queries", model=str(model), **source, **how)
    return replace(plain, route=replace(plain.route, stages=(written, plain.route.stages[1])))


def request_in(folder, base):
    return request(base=(str(base),), output=folder / "model", budget="5000steps")


@pytest.mark.parametrize("count", [120, 90])
def test_the_number_of_mined_negatives_bounds_the_run(base, tmp_path, count):
    mined_route = mined(base, small_base.pairs(tmp_path / "faq.tsv", count), 150)
    result = make(planned([timed("pairs", Shape.PAIRS), mined_route]), request_in(tmp_path, base))
    if count == 90:
        assert [route.name for route in result.routes] == list(result.paces) == ["pairs"]
        assert result.skipped[-1].why.endswith("pairs, and it needs 100")
    else:
        batch = result.routes[1].stages[1].settings.batch
        assert batch == count // 4  # pairs without a negative are kept
        assert result.paces[MINED].most == (10 * count // batch,)
        assert result.paces[MINED].once == 0


@pytest.mark.parametrize("filters", [{}, LOOSE])
def test_a_writer_that_keeps_nothing_ends_its_route_and_not_the_race(base, writer, tmp_path, filters):
    plan = planned([timed("tsdae", Shape.TEXTS), writing(tmp_path, writer, **filters)])
    result = make(plan, request_in(tmp_path, base))
    if filters:
        assert [route.name for route in result.routes] == ["tsdae", "queries"]
        settings = result.routes[1].stages[1].settings
        assert 25 // 4 <= settings.batch <= 60 // 4  # of what was kept
        assert result.paces["queries"].most[0] <= 10 * 60 // settings.batch
        assert result.paces["queries"].once == 0
    else:
        assert [route.name for route in result.routes] == list(result.paces) == ["tsdae"]
        assert result.skipped[-1] == SkippedRoute("queries", "the filters kept no pairs of 60 sentences")


def test_with_folds_the_time_for_writing_is_not_spent_yet():
    route, pace = timed("queries", Shape.TEXTS).route, Pace((1.0,), (99,), (1.0,), once=50.0, made=40.0)
    assert [bounded(pace, route, 64, trainings).once for trainings in (1, 5)] == [10, 50]


def test_views_are_made_before_the_race_and_bound_nothing(base, tmp_path):
    documents = tmp_path / "raw.txt"
    documents.write_text("\n".join(f"One is {n}. Two is {n}. Three is {n}. Four is {n}." for n in range(300)), "utf-8")
    views = stage("views", name="pairs", kind="spans", data=str(documents))
    learn = stage("contrastive", name="spans", data="stage:pairs", batch=64, steps=1)
    plan = replace(plan_for("a", [0], Pace((1.0,), (99,), (1.0,), once=7.0, made=5.0)), routes=())
    result = make(replace(plan, routes=(replace(route("a"), stages=(views, learn)),)), request_in(tmp_path, base))
    assert (result.routes[0].stages[1].settings.batch, result.made) == (64, ("a",))
    assert result.paces["a"] == Pace((1.0,), (99,), (1.0,), once=2.0)


def test_a_route_may_take_its_share_of_the_budget_if_the_others_can_still_run():
    """Two runs of ten steps, 40 s of writing before one of them, then 30 steps that repeat 2.5: 82.5 s at least."""
    plan = plan_for("ab", [1, 0], PACE)
    plan = replace(plan, paces={"a": PACE, "b": replace(PACE, once=40.0, made=40.0)}, ending=10.0)

    def seconds(left, budget=1000.0):
        return time_to_make(plan, "b", Budget(budget, None), still(left + 10.0))

    assert seconds(1000.0) == 200  # a fifth
    assert seconds(100.0) == 40 + 17.5
    assert seconds(1000.0, budget=100.0) == 40  # as forecast
    assert time_to_make(plan, "b", STEPS, still(None)) == math.inf


def test_mining_that_is_out_of_time_drops_its_route_unless_it_is_the_only_one(base, tmp_path):
    mined_route = mined(base, small_base.pairs(tmp_path / "faq.tsv", 150), 150)
    result = make(planned([timed("pairs", Shape.PAIRS), mined_route]), request_in(tmp_path, base), NO_TIME)
    assert [route.name for route in result.routes] == list(result.paces) == ["pairs"]
    assert result.skipped[-1] == SkippedRoute(MINED, LATE, for_time=True)
    assert read_plan(tmp_path / "model.fit/plan.json", {"data": ["a"]}) == result
    alone = make(planned([mined_route]), request_in(tmp_path, base), NO_TIME)
    assert [route.name for route in alone.routes] == [MINED]


def test_nothing_is_mined_if_there_is_no_time_left(base, tmp_path):
    """The data does not exist, so that reading it would fail."""
    mined_route = mined(base, tmp_path / "none.tsv", 150)
    late = replace(planned([timed("pairs", Shape.PAIRS), mined_route]), ending=999.0)
    slow = {**late.paces, MINED: replace(late.paces[MINED], once=40.0, made=40.0)}
    result = make(replace(late, paces=slow), request_in(tmp_path, base), Budget(1000.0, None), still(1000.0))
    assert result.skipped[-1] == SkippedRoute(MINED, LATE, for_time=True)


def test_writing_stops_when_its_time_is_over_and_a_resumed_fit_uses_as_much(base, writer, tmp_path):
    plan = planned([timed("tsdae", Shape.TEXTS), writing(tmp_path, writer, **LOOSE)])
    asked, said = request_in(tmp_path, base), []

    def log(line):
        said.append(line)
        if any(line.startswith("Out of time") for line in said[:-1]):
            raise KeyboardInterrupt  # once what was written is used

    with pytest.raises(KeyboardInterrupt):
        make(plan, asked, NO_TIME, log=log)
    assert "Out of time: queries writes for 40 texts instead of 60" in said
    saved = read_plan(tmp_path / "model.fit/plan.json", {"data": ["a"]})
    assert saved.changes == ("queries writes for 40 texts instead of 60",)
    assert (saved.made, saved.route("queries").stages[0].options.rows) == ((), 40)
    result = make(saved, asked, Budget(1e6, None))  # with all the time in the world
    assert result.route("queries").stages[0].options.rows == 40
    assert (result.made, result.changes) == (("queries",), saved.changes)
    assert make(result, asked, Budget(1e6, None)) == result


def test_at_the_token_limit_a_fit_goes_on_with_what_was_written(base, tmp_path):
    """Of 60 texts, those of the first block of 30 are used; nothing is written for one more within ten tokens."""

    def made(name, **options):
        (tmp_path / name).mkdir()
        written = writing(tmp_path / name, server.url, writer_model="small", block=30, **LOOSE, **options)
        return make(planned([timed("tsdae", Shape.TEXTS), written]), request_in(tmp_path / name, base))

    with chat_server(answer=lambda body: " ".join(reversed(body["messages"][-1]["content"].split()))) as server:
        assert made("whole").warnings == ()
        used = server.tokens
        limited = made("limited", max_tokens=7 * used // 8)
        assert used < server.tokens <= used + 7 * used // 8
        assert made("few", max_tokens=10).skipped[-1] == SkippedRoute("queries", NO_TOKENS)
    assert limited.route("queries").stages[0].options.rows == 30
    assert limited.warnings == ("The token limit was reached: queries writes for 30 texts instead of 60.",)
    assert limited.changes == ()
