"""`sentloom synthesize` as a user runs it: from raw text to triplets, filtered anew, refused with a reason."""

import json
import os
import shutil
import signal
import time

import pytest
import torch

from sentloom.data import read
from sentloom.writing.filters import Filtering
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from tests.training.killing import ended, start
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_synthesizers import build_small_t5

OPTIONS = ("--block", 4, "--max-tokens", 8, "--candidates", 2, "--threshold", 0)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # a forked process cannot use the threads of this one
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    build_small_t5(folder / "t5")
    (folder / "raw.txt").write_text("\n".join(raw_texts(14).column("text").to_pylist()), "utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(files):
    """A ledger as the command makes it with these options."""
    sampling, by = Sampling(candidates=2, max_tokens=8), Filtering(threshold=0)
    synthesize(
        read(files / "raw.txt"), files / "t5", files / "whole", sampling, by, Execution(block=4), show_progress=False
    )
    return files / "whole"


@pytest.fixture
def made(whole, tmp_path):
    """One to change."""
    return shutil.copytree(whole, tmp_path / "ledger")


def test_raw_text_becomes_triplets(sentloom, files, whole, tmp_path):
    ledger = tmp_path / "ledger"
    done = sentloom("synthesize", files / "raw.txt", "-o", ledger, "--synthesizer", files / "t5", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert rows_of(ledger) == rows_of(whole)
    assert derived(ledger) == derived(whole)
    kept = json.loads((ledger / "summary.json").read_text())
    assert f"({kept['triplets']:,} triplets)" in done.stdout
    assert "Synthesis: 14 sources; threshold 0" in done.stdout
    assert "entailment: kept" in done.stdout
    assert len(read(ledger / "triplets.parquet")) == kept["triplets"] > 0
    assert (ledger / "summary.png").read_bytes().startswith(b"\x89PNG")


def test_a_ledger_is_filtered_anew_without_model_or_text(sentloom, made):
    loose = derived(made)
    stamps = {path.name: path.stat().st_mtime_ns for path in (made / "blocks").iterdir()}
    done = sentloom("synthesize", "-o", made, "--threshold", 0.5)
    assert done.returncode == 0, done.stderr
    assert "threshold 0.5" in done.stdout
    assert derived(made) != loose
    done = sentloom("synthesize", "-o", made, "--threshold", 0)
    assert derived(made) == loose
    assert {path.name: path.stat().st_mtime_ns for path in (made / "blocks").iterdir()} == stamps


def test_presets_and_filters_by_name(sentloom, made):
    done = sentloom("synthesize", "-o", made, "--preset", "official-code", "--threshold", 0, "--words", 2)
    assert done.returncode == 0, done.stderr
    found = json.loads((made / "summary.json").read_text())["filtering"]
    assert found == {"threshold": 0.0, "source_words": 8, "words": 2, "substring": True, "drop_equal": False}
    assert "dropped: source words" in done.stdout


def test_fewer_rows_first(sentloom, whole, files, tmp_path):
    command = ("synthesize", files / "raw.txt", "-o", tmp_path / "grown", "--synthesizer", files / "t5", *OPTIONS)
    assert "Synthesis: 5 of 14 sources" in sentloom(*command, "--rows", 5).stdout
    assert sentloom(*command).returncode == 0
    assert rows_of(tmp_path / "grown") == rows_of(whole)
    assert derived(tmp_path / "grown") == derived(whole)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--top-p", "0.5"), "top-p without raw text"),
        (("--synthesizer", "x", "--block", "3"), "synthesizer, block without raw text"),
        (("--preset", "strict"), "no preset 'strict'. Expected one of default, paper, official-code"),
        ((), "no plan.json. Expected a ledger"),
    ],
)
def test_what_makes_no_sense_without_raw_text(sentloom, tmp_path, arguments, said):
    done = sentloom("synthesize", "-o", tmp_path / "none", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--top-p", "1.5"), "top_p"),
        (("--greedy",), "greedy"),
        (("--seed", "9"), "sampling.seed 1 (now 9)"),
        (("--workers", "2"), "2 workers with the engine local"),
        (("--synthesizer", "no/such/folder"), "no/such/folder"),
    ],
)
def test_what_cannot_be_is_refused(sentloom, made, files, arguments, said):
    before = derived(made)
    done = sentloom("synthesize", files / "raw.txt", "-o", made, "--synthesizer", files / "t5", *OPTIONS, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert derived(made) == before


def test_a_column_of_pairs_can_be_the_raw_text(sentloom, files, tmp_path):
    (tmp_path / "pairs.tsv").write_text("anchor\tpositive\na man sleeps\ta man rests\ntwo dogs run\tdogs run\n")
    command = ("synthesize", tmp_path / "pairs.tsv", "-o", tmp_path / "ledger", "--synthesizer", files / "t5", *OPTIONS)
    assert "Choose one, as in --column anchor" in sentloom(*command).stderr
    assert sentloom(*command, "--column", "positive").returncode == 0
    assert {row["source_text"] for row in rows_of(tmp_path / "ledger")} == {"a man rests", "dogs run"}


def test_a_killed_command_goes_on(sentloom, whole, files, tmp_path):
    """In a process of its own, killed as soon as the first block is there."""
    ledger = tmp_path / "killed"
    command = ("synthesize", files / "raw.txt", "-o", ledger, "--synthesizer", files / "t5", *OPTIONS)
    killed = start(lambda: sentloom(*command), tmp_path)
    while not (ledger / "blocks/000000.parquet").exists():
        assert not ended(killed), "it ended before it could be killed"
        time.sleep(0.001)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert len(Ledger.open(ledger)) < 4
    assert not (ledger / "triplets.parquet").exists()
    assert sentloom(*command).returncode == 0
    assert rows_of(ledger) == rows_of(whole)
    assert derived(ledger) == derived(whole)


def test_a_moved_ledger_still_opens(sentloom, made, tmp_path):
    moved = shutil.move(made, tmp_path / "moved")
    assert sentloom("synthesize", "-o", moved).returncode == 0
