"""The command as a whole: its help, its exit codes, and the demo."""

import re
import subprocess
import sys

import pytest

from sentloom.encoder import Encoder
from sentloom.fitting.result import FitResult
from tests.cli.commands import ENVIRONMENT
from tests.fitting.small_base import build_base

pytestmark = pytest.mark.usefixtures("embedded_encoder")
PRODUCT = "fit check evaluate tick choose gate search predict dedupe encode serve models export shrink demo".split()
LAB = "train compare reproduce recipes mine synthesize views translate corpus init-model vocabulary geometry".split()


@pytest.mark.parametrize("words", [[], ["lab"]], ids=str)
def test_help_is_quick_to_import_and_names_every_verb(words):
    script = (
        f"import sys; sys.argv = ['sentloom', *{words}, '--help']\n"
        "from sentloom.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT)
    listed = [line.split()[1] for line in done.stdout.splitlines() if re.match(r"\u2502 [a-z]", line)]
    assert listed == (LAB if words else [*PRODUCT, "lab"])
    assert done.stdout.splitlines()[-1] == "False"  # torch was not imported


@pytest.mark.parametrize("words", [*((verb,) for verb in PRODUCT), *(("lab", verb) for verb in LAB)], ids=" ".join)
def test_every_verb_has_help(sentloom, words):
    done = sentloom(*words, "--help")
    assert done.returncode == 0
    assert "--help" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["encode", "nowhere.txt", "-o", "v.npy"],
        ["evaluate", "no/such/model", "--data", "nowhere"],
        ["search", "texts.txt", "a query", "--model", "nowhere"],
        ["encode", "texts.txt", "-o", "v.npy", "--pooling", "average"],
        ["evaluate", "embedded", "--suite", "unknown"],
        ["evaluate", "embedded", "--suite", "unknown", "--cache-size", "inf"],
        ["evaluate", "embedded", "--mteb", "STSBenchmark", "-o", "scores.json"],
        ["evaluate", "embedded", "--mteb", "STSBenchmark", "-o", "here", "-o", "there"],
        ["check", "texts.txt", "--columns", "text"],
    ],
)
def test_mistakes_end_in_a_message_and_exit_code_2(sentloom, tmp_path, monkeypatch, arguments):
    (tmp_path / "texts.txt").write_text("One line.\n")
    monkeypatch.chdir(tmp_path)
    done = sentloom(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert [path.name for path in tmp_path.iterdir() if path.name != "scratch"] == ["texts.txt"]


@pytest.mark.long
def test_demo_ends_as_its_fit_does(sentloom, tmp_path):
    """With a base that knows no English."""
    base = build_base(tmp_path)
    packages = ("--packages", "click,jinja2,rich", "--held-out", "rich", "--budget", "10steps")
    done = sentloom("demo", *packages, "-o", tmp_path / "demo", "--model", base)
    result = FitResult.read(tmp_path / "demo" / "model.fit" / "report.json")
    assert done.returncode == (0 if result.verdict == "better" else 3), done.stderr
    assert (tmp_path / "demo" / "model").is_dir() == (result.verdict == "better")
    assert result.reason[:40] in done.stdout
    assert [source.name for source in result.sources] == [
        f"{tmp_path}/demo/{one}.parquet" for one in ("sentences", "pairs")
    ]


@pytest.mark.long
def test_demo_runs_the_main_job_on_few_packages(sentloom, tmp_path):
    """Ten steps: time for one route, which is enough for names that the encoder has never seen the like of."""
    packages = ("--packages", "click,jinja2,rich", "--held-out", "rich", "--budget", "10steps")
    done = sentloom("demo", *packages, "-o", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "try pairs: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("VERDICT better +")
    for label in ("before", "after"):
        assert f"{label}: rich." in done.stdout  # names among the answers
    assert (tmp_path / "model.fit" / "report.html").is_file()
    assert Encoder.load(str(tmp_path / "model")).dimension == 384
