"""kill -9 in synthesis and filtering: the end has the triplets of a run never killed, none lost and none twice."""

import json
import os
import random
import resource
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sentloom.errors import DiskError
from sentloom.writing.filters import Filtering
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from sentloom.writing.triplets import draw
from sentloom.writing.writer import NLI_KINDS
from tests.faults.conftest import Tally
from tests.training.killing import complete, hidden, kill, kill_until_done, start
from tests.writing.ledgers import derived, fill, plan_of, raw_texts, rows_of
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import build_small_t5

FAULT = "3. kill -9 in synthesis and filtering"
ASKED = 50

SAMPLING, LOOSE = Sampling(length=6), Filtering(threshold=0, finished=False)
PARTS, KILLS, WRITES = 3, 10, 4
FILTERINGS, INSIDE = 20, 10


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("models") / "t5")


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("models") / "llama")


def finish(raw, model, folder):
    synthesize(raw, model, folder, SAMPLING, LOOSE, Execution(block=2), show_progress=False)


def wait(child, faults):
    _, status = os.waitpid(child, 0)
    assert status == 0, (faults / "fault.txt").read_text()


def half_written(folder: Path) -> set[Path]:
    return hidden(folder) | hidden(folder / "blocks")


def assert_same(folder: Path, whole: Path, rows: int) -> None:
    """The same candidates, each once, the same triplets, and a summary that agrees with them."""
    assert rows_of(folder) == rows_of(whole)
    found = Counter((row["source"], row["kind"], row["candidate"]) for row in rows_of(folder))
    assert found.keys() == {(s, k, c) for s in range(rows) for k in NLI_KINDS for c in range(SAMPLING.candidates)}
    assert set(found.values()) == {1}
    assert derived(folder) == derived(whole)
    told = json.loads((folder / "summary.json").read_text("utf-8"))
    assert told["sources"] == rows
    for name in ("triplets", "pairs"):
        assert told[name] == pq.read_metadata(folder / f"{name}.parquet").num_rows


def assert_killed_ends_the_same(rows: int, model: Path, tmp_path: Path, kills: int, inside: int, name: str) -> None:
    raw, whole = raw_texts(rows), tmp_path / "whole"
    whole.mkdir()
    seconds = complete(lambda: finish(raw, model, whole), whole)
    work = lambda folder: finish(raw, model, folder)  # noqa: E731
    for run in kill_until_done(work, tmp_path / name, seconds, half_written, kills, inside):
        assert_same(run, whole, rows)


def test_two_kills(model, tmp_path):
    assert_killed_ends_the_same(30, model, tmp_path, 2, 0, "killed")


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_kills_four_of_them_inside_a_write(part, model, tmp_path, tally: Tally):
    tally.tried += KILLS
    assert_killed_ends_the_same(60, model, tmp_path, KILLS, WRITES, f"killed-{part}")


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_kills_of_a_causal_writer(part, causal, tmp_path, tally: Tally):
    tally.tried += KILLS
    assert_killed_ends_the_same(60, causal, tmp_path, KILLS, WRITES, f"killed-{part}")


@pytest.mark.long
def test_kills_while_filtering(tmp_path, tally: Tally):
    """After a kill every file is whole, of the filter before or of the new one; the same command again makes all new."""
    raw, folder, rng = raw_texts(3000), tmp_path / "ledger", random.Random(3)
    fill(Ledger.begin(folder, plan_of(raw, block=100)), raw)

    def filter_by(threshold: float) -> None:
        draw(Ledger.open(folder), Filtering(threshold=threshold), show_progress=False)

    filter_by(0.3)
    expected = {0.3: derived(folder)}
    seconds = complete(lambda: filter_by(0.7), tmp_path)
    expected[0.7] = derived(folder)
    assert all(expected[0.3][name] != expected[0.7][name] for name in expected[0.3])
    for number in range(FILTERINGS):
        before, after = (0.7, 0.3) if number % 2 == 0 else (0.3, 0.7)
        with tally.case(f"kill {number}"):
            work = lambda _: filter_by(after)  # noqa: B023, E731
            while kill(work, folder, rng.uniform(0, seconds), half_written, inside=number < INSIDE) is None:
                filter_by(before)  # it was quicker than the kill
            found = derived(folder)
            assert [name for name in found if found[name] not in (expected[before][name], expected[after][name])] == []
            filter_by(after)
            assert derived(folder) == expected[after]


@pytest.mark.long
def test_two_runs_on_one_ledger_at_a_time(model, tmp_path):
    raw = raw_texts(30)
    finish(raw, model, tmp_path / "whole")
    children = [start(lambda: finish(raw, model, tmp_path / "shared"), tmp_path) for _ in range(2)]
    for child in children:
        wait(child, tmp_path)
    assert_same(tmp_path / "shared", tmp_path / "whole", 30)


def test_a_full_disk_is_told_and_the_run_goes_on(model, tmp_path):
    raw = raw_texts(8)
    finish(raw, model, tmp_path / "whole")

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # room for the plan, not for a block
        with pytest.raises(DiskError, match=r"full/blocks/000000\.parquet: File too large"):
            finish(raw, model, tmp_path / "full")

    wait(start(full, tmp_path), tmp_path)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["plan.json", "blocks"]
    assert not list((tmp_path / "full/blocks").iterdir())
    finish(raw, model, tmp_path / "full")
    assert_same(tmp_path / "full", tmp_path / "whole", 8)
