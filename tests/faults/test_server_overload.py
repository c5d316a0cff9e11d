"""Four times the capacity: only 200, 429 and 503, short waits, flat memory, and quick recovery."""

import statistics
from argparse import Namespace

import pytest

from benchmarks.encode_speed import real_sentences
from benchmarks.serving_load import bodies_of, overload
from tests.faults.conftest import Tally

pytestmark = pytest.mark.long
FAULT = "7. server at 4x capacity"
ASKED = 3

REQUESTS = 10_000


@pytest.fixture(scope="module")
def runs() -> list[dict]:
    bodies = bodies_of(real_sentences(1500)[1])
    return [overload(bodies, Namespace(requests=REQUESTS)) for _ in range(ASKED)]


def test_everything_is_answered_or_refused_and_memory_stays_flat(runs: list[dict], tally: Tally) -> None:
    for run in runs:
        with tally.case(str(run)):
            assert run["statuses"].keys() <= {"200", "429", "503"}
            assert sum(run["statuses"].values()) == REQUESTS
            assert run["memory after, MB"] <= 1.05 * run["memory before, MB"]
            assert run["recovery, s"] <= 2


def test_accepted_requests_wait_at_most_twice_as_long_as_at_capacity(runs: list[dict]) -> None:
    """The median run: other tests share the machine."""
    ratios = [run["p99 under load, ms"] / run["p99 at capacity, ms"] for run in runs]
    assert statistics.median(ratios) <= 2, ratios
