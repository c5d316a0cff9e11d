"""Letters beyond ASCII are printed as they are, by every command and wherever the output goes."""

import os
import subprocess
import sys

import pytest

from tests.encoder.small_models import build_model_folder


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "sentloom", *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "300", **environment},
        capture_output=True,
        cwd=folder,
    )


@pytest.fixture
def latin(tmp_path):
    """A file as Excel writes it, with an umlaut in a column name only."""
    rows = [f"Wie viel kostet Karte {n}?,Sie kostet {3 * n} Euro.,ja" for n in range(90)]
    (tmp_path / "faq.csv").write_bytes(("question,answer,geändert\n" + "\n".join(rows) + "\n").encode("cp1252"))
    return tmp_path


def test_a_column_name_that_is_not_utf_8_is_printed(latin, sentloom, monkeypatch):
    monkeypatch.chdir(latin)
    checked = sentloom("check", "faq.csv")
    base = build_model_folder("bert", latin / "bert")
    fitted = sentloom("fit", "faq.csv", "-o", "model", "--budget", "2steps", "--base", base)
    assert "geändert" in checked.stdout
    assert "columns not used: geändert" in fitted.stdout


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}],
)
def test_umlauts_are_printed_in_any_locale(tmp_path, environment):
    (tmp_path / "faq.csv").write_text("question,answer,geändert\nWo?,Hier.,ja\nWann?,Jetzt.,ja\n", "utf-8")
    done = run(tmp_path, "check", "faq.csv", **environment)
    assert done.returncode == 0, done.stderr
    assert "geändert" in done.stdout.decode("utf-8")


def test_an_output_in_ascii_is_no_traceback(tmp_path):
    (tmp_path / "faq.csv").write_text("question,answer,geändert\nWo?,Hier.,ja\nWann?,Jetzt.,ja\n", "utf-8")
    done = run(tmp_path, "check", "faq.csv", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"ge?ndert" in done.stdout
