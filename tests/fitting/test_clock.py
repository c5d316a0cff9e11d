"""The clock: what is left of a budget, who gets which share of it, and laps."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.engine.building import stage
from sentloom.fitting.clock import MARGIN, REPORTING, STARTED, Clock, routes_in, size_of, stage_seconds
from sentloom.fitting.routes import Route
from tests.fitting.small_job import still


def test_a_time_budget_runs_out():
    assert Clock(100.0, started=5.0, now=lambda: 35.0).left == 70
    assert Clock(100.0, started=5.0, now=lambda: 135.0).left == -30
    assert Clock(100.0).left <= 100  # by the real clock


def test_the_clock_of_a_command_starts_with_it():
    token = STARTED.set(15.0)
    try:
        assert Clock(100.0, now=lambda: 35.0).left == 80
    finally:
        STARTED.reset(token)


def test_a_route_for_every_four_minutes_and_always_one():
    assert [routes_in(60 * minutes) for minutes in (0.5, 2, 4, 7.9, 8, 10, 12, 60)] == [1, 1, 1, 1, 2, 2, 3, 15]


def scoring(seconds, speed=0.125):
    """A clock that keeps 15 s for scoring a run (10 s, and a margin), and 30 s for the winner."""
    clock = still(seconds)
    clock.speed, clock.size_of_run, clock.size_of_winner = speed, 80, 160
    return clock


def test_time_for_merging_scoring_and_the_report_is_kept():
    clock = scoring(600.0)
    assert (clock.scoring(80), clock.ending) == (MARGIN * 10, MARGIN * 20 + REPORTING) == (15, 35)
    assert clock.merging == 60  # a tenth, which is less than five times 15 s
    assert clock.training == 600 - 35 - 60
    assert scoring(600.0, speed=0.0125).merging == pytest.approx(5 * 1.5)


def test_all_routes_share_the_first_half_and_the_best_gets_the_second():
    """Of 505 s, four parts: a quarter for each of two routes, and two quarters for the best one."""
    clock = scoring(600.0)
    first = clock.share(waiting=2, later=2)
    clock.passed += first
    second = clock.share(waiting=1, later=2)
    clock.passed += second
    assert [first, second, clock.share(waiting=1, later=0)] == pytest.approx([505 / 4, 505 / 4, 505 / 2])
    assert scoring(600.0).share(waiting=1, later=0) == 505  # a single route


@given(st.integers(1, 6), st.lists(st.floats(0.2, 1.0), min_size=12, max_size=12))
def test_however_long_runs_take_within_their_shares_the_end_has_its_time(routes, speeds):
    clock = scoring(600.0)
    for waiting, used in zip(range(routes, 0, -1), speeds, strict=False):
        clock.passed += used * clock.share(waiting, routes)
    clock.passed += clock.share(1, 0)
    assert clock.left == pytest.approx(clock.ending + clock.merging)


def test_a_late_clock_gives_no_less_than_nothing():
    clock = scoring(600.0)
    clock.passed += 590
    assert (clock.share(1, 0), clock.box(1, 1), clock.has_time_to_merge) == (0, 0, False)


def test_data_is_made_in_half_of_an_equal_share():
    assert scoring(600.0).box(routes=1, trainings=1) == 505 / 2
    assert scoring(600.0).box(routes=2, trainings=5) == 505 / 20


def test_the_slowest_scoring_counts_and_known_scores_do_not():
    """Three scorings of 100 characters: in 4 s, in 10 s, and in none, because they were known."""
    times = iter([0.0, 4.0, 4.0, 14.0, 14.0, 14.0])
    clock, speeds = Clock(600.0, started=0.0, now=lambda: next(times), size_of_run=100), []
    for _ in range(3):
        with clock.scoring_of_run():
            pass
        speeds.append(clock.speed)
    assert speeds == pytest.approx([0.04, 0.1, 0.1])


def test_on_a_busy_machine_more_time_is_kept_for_the_report():
    """Work of about no computing that takes 12 s; of the 600 s, at most 15% are kept."""
    clock = still(600.0)
    with clock.watching_others():
        clock.passed += 12.0
    assert clock.reporting == pytest.approx(0.15 * 600)
    clock.crowding = 3.0
    assert clock.reporting == 3 * REPORTING
    assert clock.ending == clock.reporting  # nothing is scored
    with clock.watching_others():  # the clock stands still, as on an idle machine
        sum(range(1000))
    assert (clock.crowding, clock.reporting) == (1.0, REPORTING)
    busy = still(20.0)
    busy.crowding = 3.0
    assert busy.reporting == REPORTING


def test_no_text_costs_more_than_what_is_read_of_it():
    assert size_of(["", "a" * 90, "b" * 5000]) == 10 + 100 + 1010


def test_stages_share_a_training_by_their_weights():
    learn = [stage("simcse", name=name, data="a.txt", steps=1) for name in ("first", "second")]
    assert stage_seconds(Route("both", "", tuple(learn)), (1, 2), 90.0) == {"first": 30, "second": 60}


def test_without_a_time_budget_no_clock_decides():
    clock = scoring(None)
    assert (clock.left, clock.training, clock.share(3, 3), clock.box(2, 5)) == (math.inf,) * 4
    assert clock.has_time_to_merge


def test_laps_of_the_same_name_add_up():
    times = iter([6.0, 8.0, 11.0])
    clock = Clock(None, started=1.0, now=lambda: next(times))
    assert [clock.lap(name) for name in ("reading", "scoring", "scoring")] == [5, 2, 3]
    assert clock.laps == {"reading": 5, "scoring": 5}


def started_without(modules, folder):
    """What `sentloom fit` prints if some modules cannot be imported."""
    code = f"import sys; sys.modules |= dict.fromkeys({modules}); from sentloom.cli import main; main()"
    call = [sys.executable, "-c", code, "fit", "faq.csv", "-o", "model"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0  # nothing can be trained without torch
    return done.stdout.splitlines()


def test_the_first_line_is_printed_before_anything_slow_is_imported(tmp_path):
    first = "Fitting an encoder to faq.csv. Everything besides the model goes to model.fit"
    assert started_without(["torch", "pandas"], tmp_path) == [first]
    rows = (f"Where is room {n} of the north wing?,Room {n} is up the stairs and to the left." for n in range(100))
    (tmp_path / "faq.csv").write_text("\n".join(["question,answer", *rows]), "utf-8")
    lines = started_without(["torch"], tmp_path)
    assert lines[0] == first
    assert lines[1].startswith("faq.csv: 100 pairs")
    assert lines[-1] == "Loading PyTorch and Transformers ..."
