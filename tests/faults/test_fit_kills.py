"""kill -9 of a fit: called again it goes on with its plan, repeats no finished run, and ends with the same result."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sentloom.fitting.result import FitResult
from tests.fitting import small_base

FAULT = "kill -9 of `fit`"

BUDGET = "90steps"  # two short runs, and one that continues the better of them


def command(base: Path, data: Path, output: Path, budget: str = BUDGET) -> list[str]:
    return [
        *(sys.executable, "-m", "sentloom", "fit", str(data), "-o", str(output)),
        *("--base", str(base), "--budget", budget),
    ]


def results(folder: Path) -> dict[str, int]:
    """The runs that are done, with the time of their writing."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("stages/*/result.json")}


def kill_when(process: subprocess.Popen, ready) -> bool:
    """Kill as soon as something is true; False if the process ended first."""
    while process.poll() is None:
        if ready():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.02)
    return False


@pytest.mark.long
@pytest.mark.parametrize("runs", [0, 1, 2])
def test_a_fit_that_is_killed_ends_as_if_it_had_not_been(tmp_path, runs, whole_fit):
    """Killed once the plan is written, before the first run is done, and once one and two of three are."""
    base, data, whole = whole_fit
    output, folder = tmp_path / "model", tmp_path / "model.fit"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command(base, data, output),
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert kill_when(process, lambda: has_lengths(folder) and len(results(folder)) >= runs)
    done, plan = results(folder), (folder / "plan.json").read_bytes()
    assert not output.exists()
    again = subprocess.run(command(base, data, output), env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert (folder / "plan.json").read_bytes() == plan
    assert "Resuming the plan" in again.stdout
    assert {name: results(folder)[name] for name in done} == done  # not repeated
    assert told(folder) == told(whole.with_name("model.fit"))
    assert (output / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["lengths", "measured"])
def test_a_fit_with_a_time_budget_keeps_what_the_clock_decided(tmp_path, whole_fit, moment):
    """Killed once a decay has begun, and at the end: lengths, and what is measured, stay as they were."""
    base, _, _ = whole_fit
    data = small_base.pairs(tmp_path / "faq.tsv", 6000)  # so many that the clock ends the run
    folder, asked = tmp_path / "model.fit", command(base, data, tmp_path / "model", "25s")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        asked, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert kill_when(process, lambda: (folder / "plan.json").is_file() and plan_of(folder)[moment])
    done, killed = results(folder), plan_of(folder)
    again = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode in (0, 3), again.stdout + again.stderr
    assert results(folder).items() >= done.items()  # not repeated
    plan = plan_of(folder)
    (length,) = killed["lengths"].values()
    assert plan["lengths"] == killed["lengths"]
    (run,) = (run for run in FitResult.read(folder / "report.json").runs if run.rung == 1)
    assert run.steps == length["pairs"]
    assert plan["measured"].items() >= killed["measured"].items()
    assert plan["changes"][: len(killed["changes"])] == killed["changes"]
    later = ("measured", "changes", "checksum", "merges")
    assert {**plan, **dict.fromkeys(later)} == {**killed, **dict.fromkeys(later)}


def has_lengths(folder: Path) -> bool:
    """Whether the plan is complete: it is first written before negatives are mined."""
    return (folder / "plan.json").is_file() and bool(plan_of(folder)["rounds"])


def plan_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "plan.json").read_text("utf-8"))


def told(folder: Path) -> dict[str, object]:
    """What a fit found, without times and places."""
    result = FitResult.read(folder / "report.json")
    runs = [(run.route, run.rung, run.steps, run.score, run.difference, run.verdict) for run in result.runs]
    measures = [(one.name, one.before, one.after, one.low, one.high) for one in result.measures]
    return {"runs": runs, "measures": measures, "model": result.hashes["model"], "neighbours": result.neighbours}


@pytest.fixture(scope="module")
def whole_fit(tmp_path_factory):
    """A fit that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    base, data = small_base.build_base(folder), small_base.pairs(folder / "faq.tsv")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "SENTLOOM_CACHE": str(folder / "cache")}  # no uses of before
    subprocess.run(command(base, data, folder / "model"), env=environment, check=True, stdout=subprocess.DEVNULL)
    plan = plan_of(folder / "model.fit")
    assert [planned["runs"] for planned in plan["rounds"]] == [2, 1]
    return base, data, folder / "model"
