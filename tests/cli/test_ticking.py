"""The command `tick`, answered by lines."""

import io
import re

from sentloom.ticking.answers import read_answers
from tests.ticking.small_fit import build_fit_folder


def test_the_command_asks_in_the_terminal_and_says_what_comes_next(sentloom, monkeypatch, tmp_path, one_thread):
    fit_folder = build_fit_folder(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("b\n" * 30 + "q\n"))
    done = sentloom("tick", fit_folder, "--terminal")
    assert done.returncode == 0
    assert "30 queries answered, 0 skipped" in done.stdout
    assert f"sentloom fit raw.txt -o model --labels {fit_folder}/ticks.jsonl" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.match(r"VERDICT no difference shown \+0\.0 preference \[.*uses=1$", last)
    assert len(read_answers(fit_folder / "ticks.jsonl").given) == 30
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    again = sentloom(
        "tick",
        fit_folder.with_suffix(""),
        "--terminal",
        "-o",
        tmp_path / "second.jsonl",
        "--labels",
        fit_folder / "ticks.jsonl",
    )
    assert again.stdout.splitlines()[-1] == last, "the other's answers count, and are the same use"


def test_a_folder_without_a_fit_is_refused(sentloom, tmp_path):
    done = sentloom("tick", tmp_path / "model", "--terminal")
    assert (done.returncode, "there is no such folder" in done.stderr) == (2, True)
