"""SIGTERM while clients ask without a pause: every request that was sent before it is answered, and the exit code is 0."""

import asyncio
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from benchmarks.serving_load import GAVE_UP, closed_loop
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.commands import Child
from tests.faults.servers import served

pytestmark = pytest.mark.long
FAULT = "9. SIGTERM under load"
ASKED = 50

CLIENTS, SECONDS = 64, 60
ALLOWED = {200, 429, 503}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("served") / "small")


async def ask_and_stop(port: int, child: Child, bodies: list[bytes], after: int) -> tuple[list, float]:
    """The requests of clients that ask until they are refused, and when, after some answers, the signal was sent."""
    answered, when = [], []

    def last(status: int) -> bool:
        answered.append(status)
        if len(answered) == after:
            when.append(time.perf_counter())
            os.kill(child.pid, signal.SIGTERM)
        return status in (503, GAVE_UP)

    return await closed_loop(port, bodies, CLIENTS, SECONDS, until=last), when[0]


@pytest.mark.parametrize("number", range(ASKED))
def test_every_accepted_request_is_answered(model: Path, tmp_path: Path, number: int) -> None:
    generator = random.Random(number)
    sizes = [generator.choice((1, 1, 8, 64, 300)) for _ in range(50)]  # above 64 the answer is sent in parts
    bodies = [json.dumps({"input": [generator.choice(SENTENCES) for _ in range(size)]}).encode() for size in sizes]
    with served(tmp_path, str(model)) as (port, child):
        answers, when = asyncio.run(ask_and_stop(port, child, bodies, generator.randint(1, 150)))
        ended = child.wait()
    statuses = [status for status, _, start in answers if start < when]
    assert set(statuses) <= ALLOWED, f"{statuses.count(GAVE_UP)} of {len(statuses)} not answered: {ended.said()}"
    assert 200 in statuses
    assert ended.code == 0
    assert "; cut off: 0." in ended.said()
