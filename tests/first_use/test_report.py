"""The report says what to do next in commands that work when pasted; the card has no paths of this machine."""

import html
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.encoder.small_models import build_model_folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A fit whose data, base and model are in folders with spaces in their names."""
    folder = tmp_path_factory.mktemp("a fit")
    (folder / "our data").mkdir()
    rows = [f"how much is ticket {n}?\tticket {n} costs {3 * n} euros" for n in range(120)]
    (folder / "our data/faq.tsv").write_text("question\tanswer\n" + "\n".join(rows) + "\n", "utf-8")
    build_model_folder("bert", folder / "our models/bert")
    return folder


@pytest.fixture(scope="module")
def fitted(place):
    """What the command prints, with relative and absolute paths."""
    command = ["fit", "our data/faq.tsv", "-o", place / "our models/it's mine", "--base", "./our models/bert"]
    return run(place, *command, "--budget", "2steps", "--force")


def run(folder, *arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "sentloom", *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "250"},
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        **more,
    )


def next_commands(place, fitted):
    """Of the report, and the same on the page and in the terminal."""
    report = (place / "our models/it's mine.fit/report.md").read_text("utf-8")
    page = html.unescape((place / "our models/it's mine.fit/report.html").read_text("utf-8"))
    part = report.partition("## What to do next")[2].partition("\n## ")[0]
    commands = re.findall(r"```sh\n(.*?)\n```", part, re.DOTALL)
    for command in commands:
        assert command in page
        assert command in fitted.stdout
    return {shlex.split(command)[1]: command for command in commands}


def test_a_model_that_was_forced_is_not_praised(place, fitted):
    folder = place / "our models/it's mine.fit"
    verdict = json.loads((folder / "report.json").read_text("utf-8"))["verdict"]
    for text in ((folder / "report.md").read_text("utf-8"), (folder / "report.html").read_text("utf-8"), fitted.stdout):
        warned = re.search(r"This model is (worse|not shown to be better) than its base, and was written only", text)
        assert bool(warned) == (verdict != "better")


def test_what_to_do_next_works_when_pasted(place, fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    assert fitted.returncode == 0, fitted.stderr
    commands = next_commands(place, fitted)
    assert set(commands) == {"search", "serve", "export"}
    parts = {name: shlex.split(command)[1:] for name, command in commands.items()}
    searched = run(tmp_path, *parts["search"], input="ticket 7\n")
    assert searched.returncode == 0, searched.stderr
    assert re.search(r"ticket \d+ costs \d+ euros", searched.stdout)
    exported = run(tmp_path, *parts["export"])
    assert exported.returncode == 0, exported.stderr
    assert (place / "our models/it's mine-onnx/onnx/model.onnx").is_file()
    with subprocess.Popen(
        [sys.executable, "-m", "sentloom", *parts["serve"], "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        cwd=tmp_path,
    ) as server:
        lines = []
        for line in server.stdout:
            lines.append(line)
            if "http://" in line:
                break
        server.terminate()
    assert "http://" in lines[-1], lines


def test_the_headline_has_a_unit(place, fitted):
    report = (place / "our models/it's mine.fit/report.md").read_text("utf-8")
    page = (place / "our models/it's mine.fit/report.html").read_text("utf-8")
    reason = json.loads((place / "our models/it's mine.fit/report.json").read_text("utf-8"))["reason"]
    assert re.search(r"nDCG@10 \d+\.\d\d before, \d+\.\d\d after", reason)
    assert all(reason in text for text in (report, html.unescape(page), fitted.stdout))
    assert re.search(r"Deciding score \([^)]*; nDCG@10, 0 to 100\): ", report)
    assert re.search(r'<span class="label">[^<]*; nDCG@10, 0 to 100</span>', page)
    assert "; nDCG@10, 0 to 100" in fitted.stdout


def test_the_card_shows_names_and_no_paths(place, fitted):
    card = (place / "our models/it's mine/README.md").read_text("utf-8")
    assert "A sentence encoder fine-tuned from bert." in card
    assert "sentloom fit faq.tsv" in card
    assert "| faq.tsv |" in card
    assert "None of them is your own task" not in card
    for path in (str(place), "our data", "our models", "./"):
        assert path not in card
    assert "base_model" not in card  # a folder is no name of the hub
