"""Making data before the race, with real models: what comes of it, what the clock and the token limit stop."""

from dataclasses import replace

import pytest

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.fitting.lengths import Extent
from sentloom.fitting.making import FEWEST_MINED, LATE, NO_TOKENS, Supply, make_data, supply_of
from sentloom.fitting.plan import FitPlan, read_plan
from sentloom.fitting.routes import Route, SkippedRoute, TrainsOn
from tests.fitting import small_base
from tests.fitting.small_job import job_in, still
from tests.fitting.test_lengths import routes_on
from tests.writing.chat_server import chat_server
from tests.writing.small_causal import build_small_causal

MINED = "pairs with mined negatives"
LOOSE = {"finished": False, "round_trip": 0, "language": False, "copied": 1.0, "length": 6}
NO_TIME = 1e-4  # seconds of a budget, of which none is left for training


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("writer"))


def planned(*routes, **values):
    """A plan of routes whose rows are known."""
    extents = {route.name: Extent.of(route, route.trains_on) for route in routes}
    return FitPlan({"data": ["a"]}, routes, (), extents, **values)


def make(plan, folder, base, seconds=None, log=lambda line: None, **asked):
    """Make the data of a plan's routes; with NO_TIME, every box is closed at once."""
    job = job_in(folder, plan, still(seconds), log, base=(str(base),), **asked)
    make_data(job, len(plan.routes), None if seconds else 5000)
    return job.plan


def mined(base, data, rows=150):
    mine, learn = routes_on(Shape.PAIRS, rows=rows)[MINED].stages
    mine = mine.model_copy(update={"model": str(base), "data": (str(data),)})
    return Route(MINED, "", (mine, learn), (TrainsOn(Shape.PAIRS, rows),))


def writing(folder, model, block=40, **options):
    """The route `queries` for 60 of 80 texts."""
    plain = routes_on(Shape.TEXTS, rows=80)["queries"]
    source = {"data": str(small_base.prose(folder / "raw.txt", 80)), "rows": 60, "block": block, "shuffle": True}
    how = {"kinds": ["query"], "encoder": "none", **options}
    written = stage("synthesize", name="written-queries", model=str(model), **source, **how)
    return replace(plain, stages=(written, plain.stages[1]))


PAIRS, SIMCSE = routes_on(Shape.PAIRS)["pairs"], routes_on(Shape.TEXTS)["simcse"]


@pytest.mark.parametrize("count", [120, 90])
def test_the_number_of_mined_negatives_bounds_the_run(base, tmp_path, count):
    result = make(planned(PAIRS, mined(base, small_base.pairs(tmp_path / "faq.tsv", count))), tmp_path, base)
    if count == 90:
        assert [route.name for route in result.routes] == ["pairs"]
        assert result.skipped[-1].why.endswith("pairs, and it needs 100")
    else:
        batch = result.routes[1].stages[1].settings.batch
        assert batch == count // 4  # pairs without a negative are kept
        assert result.extents[MINED].most == (10 * count // batch,)


@pytest.mark.parametrize("filters", [{}, LOOSE])
def test_a_writer_that_keeps_nothing_ends_its_route_and_not_the_race(base, writer, tmp_path, filters):
    result = make(planned(SIMCSE, writing(tmp_path, writer, **filters)), tmp_path, base)
    if filters:
        assert [route.name for route in result.routes] == ["simcse", "queries"]
        settings = result.routes[1].stages[1].settings
        assert 25 // 4 <= settings.batch <= 60 // 4  # of what was kept
        assert result.extents["queries"].most[0] <= 10 * 60 // settings.batch
    else:
        assert [route.name for route in result.routes] == ["simcse"]
        assert result.skipped[-1] == SkippedRoute("queries", "the filters kept no pairs of 60 sentences")


def test_views_are_made_before_the_race_and_bound_nothing(base, tmp_path):
    documents = tmp_path / "raw.txt"
    documents.write_text("\n".join(f"One is {n}. Two is {n}. Three is {n}. Four is {n}." for n in range(300)), "utf-8")
    views = stage("views", name="pairs", kind="spans", data=str(documents))
    learn = stage("contrastive", name="spans", data="stage:pairs", batch=64, steps=1)
    plan = planned(Route("a", "", (views, learn), (TrainsOn(Shape.TEXTS, 300),)))
    result = make(plan, tmp_path, base)
    assert (result.routes[0].stages[1].settings.batch, result.made) == (64, ("a",))
    assert result.extents == plan.extents


def test_mining_that_is_out_of_time_drops_its_route_unless_it_is_the_only_one(base, tmp_path):
    route = mined(base, small_base.pairs(tmp_path / "faq.tsv", 150))
    result = make(planned(PAIRS, route), tmp_path, base, NO_TIME)
    assert [route.name for route in result.routes] == ["pairs"]
    assert result.skipped[-1] == SkippedRoute(MINED, LATE, for_time=True)
    assert read_plan(tmp_path / "model.fit/plan.json", {"data": ["a"]}) == result
    alone = make(planned(route), tmp_path, base, NO_TIME)
    assert [route.name for route in alone.routes] == [MINED]


def test_the_next_route_takes_the_place_of_one_that_is_skipped(base, tmp_path):
    """Too few negatives are found, and there is a route that was not to race; one more stays out."""
    first, spare, last = PAIRS, replace(PAIRS, name="spare"), replace(PAIRS, name="last")
    few = mined(base, small_base.pairs(tmp_path / "faq.tsv", 90))
    learn = spare.stages[0].model_copy(update={"data": (str(tmp_path / "faq.tsv"),)})
    spare = replace(spare, stages=(learn,))
    result = make(replace(planned(first, few), spare=(spare, last)), tmp_path, base, 1e6)
    assert ([route.name for route in result.routes], result.spare) == (["pairs", "spare"], (last,))
    assert result.extents["spare"].most == (3 * 10_000 // 32,)  # what it says that it learns from


def test_writing_stops_when_its_box_closes_and_a_resumed_fit_uses_as_much(base, writer, tmp_path):
    plan, said = planned(SIMCSE, writing(tmp_path, writer, **LOOSE)), []

    def log(line):
        said.append(line)
        if any(line.startswith("Out of time") for line in said[:-1]):
            raise KeyboardInterrupt  # once what was written is used

    with pytest.raises(KeyboardInterrupt):
        make(plan, tmp_path, base, NO_TIME, log)
    assert "Out of time: queries writes for 40 texts instead of 60" in said
    saved = read_plan(tmp_path / "model.fit/plan.json", {"data": ["a"]})
    assert saved.changes == ("queries writes for 40 texts instead of 60",)
    assert (saved.made, saved.route("queries").stages[0].options.rows) == (("simcse",), 40)
    result = make(saved, tmp_path, base, 1e6)  # with all the time in the world
    assert result.route("queries").stages[0].options.rows == 40
    assert (result.made, result.changes) == (("simcse", "queries"), saved.changes)
    assert make(result, tmp_path, base, 1e6) == result


def test_at_the_token_limit_a_fit_goes_on_with_what_was_written(base, tmp_path):
    """Of 60 texts, those of the first block of 30 are used; nothing is written for one more within ten tokens."""

    def made(name, **options):
        (tmp_path / name).mkdir()
        written = writing(tmp_path / name, server.url, writer_model="small", block=30, **LOOSE, **options)
        return make(planned(SIMCSE, written), tmp_path / name, base)

    with chat_server(answer=lambda body: " ".join(reversed(body["messages"][-1]["content"].split()))) as server:
        assert made("whole").warnings == ()
        used = server.tokens
        limited = made("limited", max_tokens=7 * used // 8)
        assert used < server.tokens <= used + 7 * used // 8
        assert made("few", max_tokens=10).skipped[-1] == SkippedRoute("queries", NO_TOKENS)
    assert limited.route("queries").stages[0].options.rows == 30
    assert limited.warnings == ("The token limit was reached: queries writes for 30 texts instead of 60.",)
    assert limited.changes == ()


# --- what there is to learn from ---


def supply(route, folder, base, steps=None, clock=None):
    return supply_of(route, job_in(folder, clock=clock or still(None), base=(str(base),)), steps)


def test_no_more_is_made_than_a_budget_of_steps_can_use(base, tmp_path):
    route = mined(base, small_base.pairs(tmp_path / "faq.tsv", 400), rows=400)
    few = supply(route, tmp_path, base, steps=2)
    assert few.route.stages[0].options.rows == 128  # two batches of 64
    assert few.extent.most == (10 * 128 // 32,)
    assert few.learned == (TrainsOn(Shape.PAIRS, 128),)
    assert supply(route, tmp_path, base, steps=100).route.stages[0].options.rows == 400


def test_negatives_are_mined_for_as_many_pairs_as_there_is_time_to_encode(base, tmp_path):
    """A box of 455 s; a pair of this file is about 64 characters and two times ten, which are encoded twice."""
    route = mined(base, small_base.pairs(tmp_path / "faq.tsv", 500), rows=500)
    clock = still(1000.0)
    clock.speed = 1.0
    assert supply(route, tmp_path, base, clock=clock).route.stages[0].options.rows == FEWEST_MINED
    clock.speed = 0.01
    rows = supply(route, tmp_path, base, clock=clock).route.stages[0].options.rows
    assert 250 < rows < 500
    clock.speed = 0.001
    assert supply(route, tmp_path, base, clock=clock).route.stages[0].options.rows == 500


def test_a_route_that_says_nothing_trains_on_what_is_there_and_one_without_its_parts_is_skipped(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv", 40)
    mine = stage("mine", name="negatives", model=str(base), data=str(data))
    on_pairs = stage("contrastive", name="pairs", data=str(data), batch=8, max_length=16)
    on_mined = stage("contrastive", name="mined", data="stage:negatives", batch=8, max_length=16)
    found = supply(Route("both", "", (on_pairs, mine, on_mined)), tmp_path, base)
    assert isinstance(found, Supply)
    assert [learned.rows for learned in found.learned] == [40, 40]
    absent = stage("views", name="views", data=str(data), kind="mask-fill", model=str(tmp_path / "not-here"))
    learn = stage("contrastive", name="learn", data="stage:views", batch=8)
    assert supply(Route("views", "", (absent, learn)), tmp_path, base).name == "views"
