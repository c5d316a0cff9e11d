"""Hostile requests: the answer is 4xx or a closed connection, the server lives, and its other clients hardly notice."""

import asyncio
import json
import logging
import math
import multiprocessing
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.serving_load import Connection
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.attacks import CLOSED, KEY, attacks, carry_out
from tests.faults.conftest import Tally
from tests.faults.servers import served

pytestmark = pytest.mark.long
LOG = logging.getLogger(__name__)  # shown by -o log_cli=true --log-level=INFO
FAULT = "8. hostile requests"
ASKED = 2_000

SEEDS, ATTACKS = 4, 250
SCHEMA_CASES = 500  # allowed ones, and as many others
PER_SECOND = 25
SLOWER = 1.2  # how much longer neighbours may wait during an attack


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, a corpus and a key."""
    folder = tmp_path_factory.mktemp("served")
    build_model_folder("bert", folder / "small")
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    (folder / "key").write_text(KEY)
    return folder


OPTIONS = ("--corpus", "texts.txt", "--api-key-file", "key")


class Neighbour(Connection):
    """An honest client: the seconds of its answers."""

    key = KEY

    def ask(self, number: int) -> list[float]:
        body = json.dumps({"input": SENTENCES}).encode()

        async def several() -> list[tuple[int, float, float]]:
            found = [await self.post(body) for _ in range(number)]
            self.close()
            return found

        found = asyncio.run(several())
        assert {status for status, _, _ in found} == {200}
        return [seconds for _, seconds, _ in found]


class Attacker:
    """A process of its own, so that its work does not slow down the neighbours' client."""

    def __init__(self, port: int, seed: int, results: Path) -> None:
        fork = multiprocessing.get_context("fork")
        self.attacking, self.over = fork.Event(), fork.Event()
        self.port, self.seed, self.results = port, seed, results
        self.process = fork.Process(target=self._attack)

    def _attack(self) -> None:
        with ThreadPoolExecutor(64) as clients:  # most of them wait for what is slow
            begun = []
            for name, one in attacks(ATTACKS, self.seed):
                self.attacking.wait()
                begun.append((name, clients.submit(carry_out, self.port, one)))
                time.sleep(1 / PER_SECOND)
            self.over.set()
            self.results.write_text(json.dumps([(name, outcome.result()) for name, outcome in begun]))


def latencies(neighbour: Neighbour, attacker: Attacker) -> tuple[float, float]:
    """Median seconds of a neighbour's requests while nobody attacks and while the attacker does, in turns."""
    quiet, attacked = [], []
    attacker.process.start()
    while not attacker.over.is_set():
        attacker.attacking.clear()
        quiet += neighbour.ask(10)
        attacker.attacking.set()
        attacked += neighbour.ask(10)
    attacker.process.join()
    return statistics.median(quiet), statistics.median(attacked)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hostile_connections_are_refused_and_neighbours_hardly_notice(folder: Path, tally: Tally, seed: int) -> None:
    with served(folder, "embedded", *OPTIONS) as (port, child):
        neighbour, attacker = Neighbour(port), Attacker(port, seed, folder / "outcomes.json")
        neighbour.ask(50)
        quiet, attacked = latencies(neighbour, attacker)
        outcomes = json.loads(attacker.results.read_text())
        answers = Counter(outcome for _, outcome in outcomes)
        LOG.info("%s; a neighbour's median: %.1f ms, attacked %.1f ms", dict(answers), 1000 * quiet, 1000 * attacked)
        for name, outcome in outcomes:
            with tally.case(name):
                assert outcome == CLOSED or outcome.startswith("4"), outcome
        neighbour.ask(50)
        assert child.poll() is None
        assert "Traceback" not in child.log.read_text()
    assert tally.tried == ATTACKS
    assert attacked <= SLOWER * quiet, f"{1000 * attacked:.1f} ms against {1000 * quiet:.1f} ms"


@pytest.fixture(scope="module")
def checks() -> list[Any]:
    """What an answer must be: no server error, and of a status, type and form that the schema describes."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install schemathesis")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    described = (checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance)
    return [not_a_server_error, *described]


def try_all(operation: Any, mode: Any, number: int, tally: Tally, checks: list[Any]) -> None:
    """Requests to one endpoint, made from the schema."""

    @settings(max_examples=number, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(mode))
    def every(case: Any) -> None:
        with tally.case(f"{mode.value} {operation.label}"):
            answer = case.call(headers={"Authorization": f"Bearer {KEY}"}, timeout=60)
            case.validate_response(answer, checks=checks)

    every()


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_what_the_schema_allows_and_what_not_gets_an_answer_that_it_describes(
    folder: Path, tally: Tally, checks: list[Any], mode: str
) -> None:
    import schemathesis

    with served(folder, "small", *OPTIONS) as (port, child):
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        posts = [one for one in operations if one.method == "post"]  # the others have no input
        for operation in posts:
            number = math.ceil(SCHEMA_CASES / len(posts))
            try_all(operation, schemathesis.GenerationMode(mode), number, tally, checks)
        assert child.poll() is None
        assert "Traceback" not in child.log.read_text()
