"""The end of a fit under a clock that the tests set: what is measured, what is dropped, and what a resumed fit does."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.budget import BESIDES, Speed
from sentloom.fitting.clock import Clock
from sentloom.fitting.ending import candidate_counts, searching_in_time, time_for_scores
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.plan import REPORTING, read_plan
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import RaceContext
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import Candidates, held_out
from tests.fitting.test_race import PACE, plan_for, stopped
from tests.small_data import build_dataset

SEARCHED = Candidates(validation=50, test=340)


def speed(per_text, size=50.0):
    return Speed(per_text, size, longest=1000)


def rows(kind, size):
    return build_dataset(Shape.PAIRS, [(f"{kind} question {n}", f"{kind} answer {n}") for n in range(size)])


@pytest.fixture(scope="module")
def prepared():
    """Twenty test questions search all 340 answers; validation questions have searched 50 of them."""
    split = Split(*(rows(kind, size) for kind, size in (("train", 300), ("val", 20), ("test", 20), ("none", 0))))
    fit_input = FitInput("faq.csv", split.train, None, {"anchor": {"en": 1.0}})
    return Prepared((fit_input,), (split,), (split.train,), (), (), (), (), general_task()).searching(SEARCHED)


@pytest.fixture
def context(tmp_path):
    """After a race that was planned with a tenth of a second for each of 310 new texts, and four seconds to search."""

    def build(clock, plan=None):
        plan = plan or plan_for("a", [0], PACE, candidates=SEARCHED, seconds_per_text=0.1, testing=35.0)
        return RaceContext(plan, "base", 1, tmp_path, (), (), None, None, clock, lambda line: None)

    return build


def documents(data):
    return data.test[0].tasks[0].texts["document"]


def test_on_a_machine_as_fast_as_expected_all_candidates_are_searched(prepared, context, tmp_path):
    here = context(stopped(1000.0, gone=900.0))
    assert searching_in_time(here, prepared, speed(0.1)) is prepared
    assert (here.plan.candidates, here.plan.changes) == (SEARCHED, ())
    assert read_plan(tmp_path / "plan.json", {}) == here.plan  # also if nothing changes
    assert searching_in_time(context(stopped(1000.0, gone=999.0), here.plan), prepared, speed(9.0)) is prepared


def test_a_slow_machine_searches_a_sample_with_all_held_out_candidates(prepared, context, tmp_path):
    """Of 150 s, 20 s are to search, and 260 texts are encoded: 20 questions and 240 answers, besides 50 known ones."""
    here = context(stopped(1000.0, gone=100.0))
    searched = searching_in_time(here, prepared, speed(0.5))
    assert len(documents(searched)) == 290
    assert set(documents(searched)) < set(documents(prepared))
    assert {f"{kind} answer {n}" for kind in ("val", "test") for n in range(20)} < set(documents(searched))
    assert here.plan.changes == ("the test rows of faq.csv search 290 candidates instead of 340",)
    assert here.plan.candidates == Candidates(50, 290)
    assert [task.sha256 for task in searched.choosing] == [task.sha256 for task in prepared.choosing]
    assert read_plan(tmp_path / "plan.json", {}) == here.plan
    resumed = prepared.searching(here.plan.candidates)
    assert documents(resumed) == documents(searched)
    assert searching_in_time(context(stopped(1000.0, gone=999.0), here.plan), resumed, speed(9.0)) is resumed


def test_the_time_that_is_left_counts_and_the_verdict_comes_even_after_it(prepared, context):
    """Of 60 s, 4 s are for the report: as above, but with 112 texts instead of 300."""
    assert len(documents(searching_in_time(context(stopped(1000.0, gone=940.0)), prepared, speed(0.5)))) == 102
    assert len(documents(searching_in_time(context(stopped(1000.0, gone=1001.0)), prepared, speed(0.5)))) == 40


def test_a_budget_in_steps_knows_no_time(prepared, context):
    here = context(Clock(None))
    assert searching_in_time(here, prepared, None) is prepared
    assert time_for_scores(here, None)("general ability", [prepared.general])
    assert here.plan.measured == {}


def test_general_ability_is_dropped_first_and_by_a_resumed_fit_too(prepared, context, tmp_path):
    """240 triplets are 720 texts, and three models are scored on them: 216 s if every text takes a tenth of a second."""
    tasks = [prepared.general]
    texts = [text for role_texts in prepared.general.texts.values() for text in role_texts]
    assert len(texts) == 720
    slow = speed(0.1, sum(len(text) + BESIDES for text in texts) / len(texts))
    enough, late = (context(stopped(1000.0, gone=1000 - REPORTING - left)) for left in (217.0, 215.0))
    assert time_for_scores(enough, slow)("general ability", tasks)
    assert not time_for_scores(late, slow)("general ability", tasks)
    assert late.plan.changes == ("general ability is not measured",)
    assert read_plan(tmp_path / "plan.json", {}) == late.plan
    resumed = context(stopped(1000.0), late.plan)
    assert not time_for_scores(resumed, slow)("general ability", tasks)
    assert resumed.plan.changes == late.plan.changes


def test_if_the_runs_were_slower_than_expected_so_is_the_report(context):
    here = context(stopped(100.0, gone=79.0))
    assert here.left_at_end == 21 - REPORTING
    here.spent, here.expected = 30.0, 15.0
    assert here.left_at_end == 21 - 2 * REPORTING


def test_candidates_are_counted_per_direction():
    labels = build_dataset(Shape.CLASSIFICATION, [(f"text {n}", str(n % 2)) for n in range(12)])
    both = build_dataset(Shape.PARALLEL, [(f"a {n}", f"b {n}") for n in range(12)])
    triplets = build_dataset(Shape.TRIPLETS, [(f"a {n}", f"b {n}", [f"c {n}"]) for n in range(12)])
    counts = [candidate_counts(held_out("x", data)) for data in (rows("x", 12), both, triplets, labels)]
    assert counts == [[12], [12, 12], [24], []]  # without training rows, labels are found by a probe alone
