"""`sentloom lab synthesize` as a user runs it: from raw text to triplets, filtered again, refused with a reason."""

import json
import os
import shutil
import signal
import time

import pytest

from sentloom.data import read
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from tests.training.killing import ended, start
from tests.writing.chat_server import chat_server
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_synthesizers import build_small_t5

SAMPLING = "length=8,candidates=2"
LOOSE = "threshold=0,finished=false"
OPTIONS = ("--execution", "block=4", "--sampling", SAMPLING, "--filters", LOOSE)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    build_small_t5(folder / "t5")
    (folder / "raw.txt").write_text("\n".join(raw_texts(14).column("text").to_pylist()), "utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(files):
    """A ledger as the command makes it with these options."""
    sampling, by = Sampling(candidates=2, length=8), Filtering(threshold=0, finished=False)
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
    done = sentloom("lab", "synthesize", files / "raw.txt", "-o", ledger, "--writer", files / "t5", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert rows_of(ledger) == rows_of(whole)
    assert derived(ledger) == derived(whole)
    kept = json.loads((ledger / "summary.json").read_text())
    assert f"{kept['triplets']:,} triplets and {kept['pairs']:,} pairs from 14 sources" in done.stdout
    assert f"written: {ledger / 'triplets.parquet'}" in done.stdout.replace("\n", "")
    assert "Synthesis: 14 sources; threshold 0" in done.stdout
    assert "entailment: kept" in done.stdout
    assert len(read(ledger / "triplets.parquet")) == kept["triplets"] > 0
    assert (ledger / "summary.png").read_bytes().startswith(b"\x89PNG")


def test_a_ledger_is_filtered_again_without_model_or_text(sentloom, made):
    loose = derived(made)
    stamps = {path.name: path.stat().st_mtime_ns for path in (made / "blocks").iterdir()}
    done = sentloom("lab", "synthesize", "-o", made, "--filters", "threshold=0.5,finished=false")
    assert done.returncode == 0, done.stderr
    assert "threshold 0.5" in done.stdout
    assert derived(made) != loose
    done = sentloom("lab", "synthesize", "-o", made, "--filters", LOOSE)
    assert derived(made) == loose
    assert {path.name: path.stat().st_mtime_ns for path in (made / "blocks").iterdir()} == stamps


def test_presets_and_filters_by_name(sentloom, made):
    done = sentloom("lab", "synthesize", "-o", made, "--filters", "official-code,words=2,threshold=0")
    assert done.returncode == 0, done.stderr
    found = json.loads((made / "summary.json").read_text())["filtering"]
    assert found == {**PRESETS["official-code"].model_dump(), "words": 2, "threshold": 0.0}
    assert "dropped: source words" in done.stdout


def test_fewer_rows_first(sentloom, whole, files, tmp_path):
    command = ("lab", "synthesize", files / "raw.txt", "-o", tmp_path / "grown", "--writer", files / "t5", *OPTIONS)
    assert "Synthesis: 5 of 14 sources" in sentloom(*command, "--execution", "block=4,rows=5").stdout
    assert sentloom(*command).returncode == 0
    assert rows_of(tmp_path / "grown") == rows_of(whole)
    assert derived(tmp_path / "grown") == derived(whole)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sampling", "top_p=0.5"), "sampling cannot be used without raw text"),
        (("--writer", "x", "--execution", "block=3"), "writer and execution cannot be used without raw"),
        (("--filters", "strict"), "there is no preset 'strict'. Expected one of default, paper, official-code"),
        (("--filters", "paper,word=3"), "filters: unknown name 'word'. Expected one of threshold, round_trip, "),
        (("--kind", "query"), "kind cannot be used without raw"),
        ((), "no plan.json. Expected a ledger"),
    ],
)
def test_what_makes_no_sense_without_raw_text(sentloom, tmp_path, arguments, said):
    done = sentloom("lab", "synthesize", "-o", tmp_path / "none", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sampling", "top_p=1.5"), "sampling: top_p is '1.5'. Expected a number less than or equal to 1."),
        (("--sampling", "candidates=2,greedy=true"), "greedy would write the same text 2 times"),
        (("--sampling", f"{SAMPLING},seed=9"), "sampling.seed 1 (now 9)"),
        (("--execution", "workers=2"), "2 workers need the engine ray"),
        (("--writer", "no/such/folder"), "no/such/folder"),
        (("--kind", "questions"), "there is no kind 'questions'. Expected one of entailment, contradiction, query"),
        (("--max-tokens", 9), "--max-tokens can only be given for an endpoint"),
        (("--writer", "https://example.org/v1"), "Name it: --writer-model NAME"),
        (("--shots", "no-such.tsv"), "no-such.tsv"),
    ],
)
def test_what_cannot_be_is_refused(sentloom, made, files, arguments, said):
    before = derived(made)
    done = sentloom("lab", "synthesize", files / "raw.txt", "-o", made, "--writer", files / "t5", *OPTIONS, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert derived(made) == before


def test_a_column_of_pairs_can_be_the_raw_text(sentloom, files, tmp_path):
    (tmp_path / "pairs.tsv").write_text("anchor\tpositive\na man sleeps\ta man rests\ntwo dogs run\tdogs run\n")
    command = (
        "lab",
        "synthesize",
        tmp_path / "pairs.tsv",
        "-o",
        tmp_path / "ledger",
        "--writer",
        files / "t5",
        *OPTIONS,
    )
    assert "Choose one: --columns text=anchor" in sentloom(*command).stderr
    assert sentloom(*command, "--columns", "text=positive").returncode == 0
    assert {row["source_text"] for row in rows_of(tmp_path / "ledger")} == {"a man rests", "dogs run"}


def test_a_killed_command_resumes(sentloom, whole, files, tmp_path):
    """In a process of its own, killed as soon as the first block is there."""
    ledger = tmp_path / "killed"
    command = ("lab", "synthesize", files / "raw.txt", "-o", ledger, "--writer", files / "t5", *OPTIONS)
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
    assert sentloom("lab", "synthesize", "-o", moved).returncode == 0


def test_queries_are_written_searched_and_kept_as_pairs(sentloom, files, tmp_path):
    """Own pairs are the shots; nothing is asked of an encoder."""
    (tmp_path / "mine.tsv").write_text("anchor\tpositive\nsleeping man\ta man sleeps in the park\n")
    command = (
        "lab",
        "synthesize",
        files / "raw.txt",
        "-o",
        tmp_path / "ledger",
        "--writer",
        files / "t5",
        "--kind",
        "query",
    )
    runs = ("--execution", "encoder=none,block=4", "--shots", tmp_path / "mine.tsv", "--sampling", SAMPLING)
    done = sentloom(*command, *runs, "--filters", "round_trip=0,finished=false,copied=1,language=false")
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "ledger")
    assert {row["kind"] for row in rows} == {"query"}
    assert all("Text: a man sleeps in the park\nQuery: sleeping man" in row["prompt"] for row in rows)
    pairs = read(tmp_path / "ledger/pairs.parquet")
    assert len(pairs) > 0
    written = {(row["text"], row["source_text"]) for row in rows}
    assert {(pair["anchor"], pair["positive"]) for pair in pairs} <= written
    assert "query: kept" in done.stdout
    assert (
        "Expected the same values"
        in sentloom(*command, "--sampling", SAMPLING, "--execution", "encoder=none,block=4").stderr
    )


def test_an_endpoint_writes_and_is_announced(sentloom, files, tmp_path):
    with chat_server() as server:
        command = (
            "lab",
            "synthesize",
            files / "raw.txt",
            "-o",
            tmp_path / "ledger",
            "--writer",
            server.url,
            "--kind",
            "query",
        )
        done = sentloom(
            *command, "--writer-model", "small", "--execution", "encoder=none,block=4", "--filters", "copied=1"
        )
        assert done.returncode == 0, done.stderr
        assert len(server.bodies) == 14
    assert f"sending 14 texts to {server.url[7:-3]} (small): 14 requests, about " in done.stdout
    assert len(read(tmp_path / "ledger/pairs.parquet")) > 5  # they repeat their source, and so find it
