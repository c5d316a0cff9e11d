"""The clock: what is left of a budget, what planning may take, and laps."""

import math
import subprocess
import sys

import pytest

from sentloom.fitting.clock import STARTED, Clock


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


@pytest.mark.parametrize(("budget", "planning"), [(3600, 360), (600, 60), (200, 30), (120, 24), (60, 12)])
def test_planning_takes_a_tenth_or_half_a_minute_and_at_most_a_fifth_of_a_short_budget(budget, planning):
    assert Clock(float(budget)).planning == planning


def test_without_a_time_budget_no_clock_decides():
    assert (Clock(None).left, Clock(None).planning) == (math.inf, math.inf)


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
    assert lines[2] == "Loading PyTorch and Transformers ..."
