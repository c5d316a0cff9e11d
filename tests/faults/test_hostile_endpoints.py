"""Hostile answers of an endpoint: after any of them a ledger can be resumed and is finished with good answers."""

from pathlib import Path

import pytest

from sentloom import SentloomError
from sentloom.lab import synthesize
from tests.attacks.endpoints import KEY, SECRET, contents, rows
from tests.faults.conftest import Tally
from tests.faults.hostile_answers import hostile
from tests.writing.chat_server import chat_server

pytestmark = pytest.mark.long
FAULT = "hostile endpoints"

SEEDS, ANSWERS = 8, 75
TEXTS = [f"Parcel {number} waits at the office." for number in range(60)]
MOST_RUNS = 60
STRETCHES = {SECRET[at : at + 8] for at in range(len(SECRET) - 7)}


def write(folder: Path, url: str) -> str:
    """One run; what it says."""
    said: list[str] = []
    execution = "block=20,requests=32,timeout=2"
    try:
        synthesize(TEXTS, folder / "ledger", writer=url, writer_model="m", execution=execution, log=said.append)
    except SentloomError as error:
        said.append(f"error: {error}")
    return "\n".join(said)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_ledger_survives_hostile_answers(tmp_path, monkeypatch, capfd, tally: Tally, seed: int) -> None:
    monkeypatch.setenv(KEY, SECRET)
    faults = list(hostile(ANSWERS, seed, SECRET))
    said = []
    with chat_server(faults=[fault for each in faults for fault in (each, None)]) as server:
        while server.faults and len(said) < MOST_RUNS:
            said.append(write(tmp_path, server.url))
        tally.tried += ANSWERS - len(server.faults) // 2
        server.faults.clear()
        said.append(write(tmp_path, server.url))
        asked = len(server.times)
        said.append(write(tmp_path, server.url))
        assert "error" not in said[-2] + said[-1]
        assert len(server.times) == asked
    assert len(rows(tmp_path)) == 2 * len(TEXTS)
    assert tally.tried == ANSWERS
    output = (*said, *capfd.readouterr(), *contents(tmp_path))
    assert [stretch for stretch in STRETCHES for text in output if stretch in text] == []
