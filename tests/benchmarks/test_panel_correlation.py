"""The script that measures the panel: its help, and what it measures of a model."""

import subprocess
import sys

import pytest

from benchmarks import panel_correlation as script
from benchmarks.panel_candidates import Asked
from benchmarks.panel_domains import Domain
from sentloom import Encoder
from sentloom.evaluation.pairs import correlation_task
from sentloom.evaluation.set_source import Rows
from sentloom.fitting.panel import panel
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.mark.long
def test_the_script_shows_its_help():
    done = subprocess.run([sys.executable, "-m", script.__name__, "--help"], capture_output=True, text=True, check=True)
    assert "--writer" in done.stdout


def test_a_model_is_measured_once(tmp_path):
    """By the tasks of the panel, labels and queries; a second time everything is read."""
    rows = {"sentence1": SENTENCES[:4], "sentence2": SENTENCES[4:8], "score": [1.0, 2.0, 3.0, 4.0]}
    one = Domain("small", [], [], SENTENCES, correlation_task("small", Rows(rows, "small")))
    asked = Asked(SENTENCES[:6], [("a query", 2)], SENTENCES[:2])
    small_encoder = Encoder.load(build_model_folder("bert", tmp_path / "small"))
    found = script.measured(small_encoder, one, asked, tmp_path)
    assert set(found["scores"]) == {task.name for task in panel(SENTENCES)}
    assert len(found["true"]["items"]) == 4
    assert [len(row) for row in found["ranked"]] == [6, 5, 5], "a sentence does not find itself"
    (file,) = (tmp_path / "measured").iterdir()
    file.write_text('{"read": true}', "utf-8")
    assert script.measured(small_encoder, one, asked, tmp_path) == {"read": True}
