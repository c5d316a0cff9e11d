"""A fit under way, with a clock that a test sets."""

from accelerate import Accelerator

from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.clock import Clock
from sentloom.fitting.plan import FitPlan, Job
from tests.fitting.test_request import request


def still(seconds, gone=0.0):
    """A clock that only a test moves, by what has `passed`, however slow the machine is."""
    clock = Clock(seconds, started=0.0, now=lambda: clock.passed)
    clock.passed = gone
    return clock


def job_in(folder, plan=None, clock=None, log=lambda line: None, kind=Job, **asked):
    """A fit whose folder is FOLDER/model.fit."""
    asked = request(output=folder / "model", **asked)
    shared = (open_memory(folder / "measured"), Accelerator(cpu=True), clock or still(None), log)
    return kind(asked, *shared, plan or FitPlan({}, (), ()))
