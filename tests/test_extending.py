"""docs/extending.md is installed as it is printed, and everything it adds is used by the real commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.cli.fitting import NOT_BETTER
from sentloom.fitting.result import FitResult
from tests.fitting import small_base

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def code():
    blocks = re.findall(r"```(toml|python|yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    kinds = {kind for kind, _ in blocks}
    return {kind: "\n".join(block for other, block in blocks if other == kind) for kind in kinds}


@pytest.fixture(scope="module")
def installed(code, tmp_path_factory):
    """A folder with the package in it, installed by pip without the network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(code["toml"])
    (source / "sentloom_pull.py").write_text(code["python"])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", target, source], check=True)
    return target


TRAIN = {
    "train": ["lab", "train", "recipe.yaml", "-o", "out"],
    "unknown option": ["lab", "train", "recipe.yaml", "-o", "other", "--set", "pull-together.heat=1"],
    "stage": ["lab", "train", "layers.yaml", "-o", "layers"],
}
SCORED = ["BASE", "letters", "--data", ".", "--cache", "cache"]
EVALUATE = {
    "suite": ["evaluate", *SCORED, "--suite", "helpdesk", "-o", "scores.json"],
    "set": ["evaluate", *SCORED, "--suite", "helpdesk/chat", "-o", "one.json"],
    "no file": ["evaluate", "letters", "--data", "cache", "--suite", "helpdesk/mail", "-o", "none.json"],
}
FIT = {"fit": ["fit", "pairs.tsv", "-o", "m", "--base", "BASE", "--budget", "600steps"]}
CHILD = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from sentloom.cli import main
done = {}
for name, arguments in json.loads(sys.argv[1]).items():
    sys.argv, said = ["sentloom", *arguments], io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            done[name] = [ended.code or 0, said.getvalue()]
print(json.dumps(done))
"""


def run(commands, installed, code, folder):
    """Commands in a process that finds the package as it starts, as a user's does: exit codes and what they say."""
    base = small_base.build_base(folder)
    small_base.pairs(folder / "pairs.tsv", 300)
    (folder / "recipe.yaml").write_text(code["yaml"].replace("embedded", str(base)))
    (stages,) = re.findall(r"^    (stages: .*)", PAGE.read_text("utf-8"), re.MULTILINE)
    short = stages.replace("data: pairs.tsv", "data: pairs.tsv, batch: 4, steps: 2")
    (folder / "layers.yaml").write_text(f"base: {base}\n{short}\n")
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    command = [sys.executable, "-c", CHILD, json.dumps(commands).replace("BASE", str(base))]
    child = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_a_recipe_trains_the_method(installed, code, tmp_path):
    done = run(TRAIN, installed, code, tmp_path)
    ended, said = done["train"]
    assert ended == 0, said
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    ended, said = done["unknown option"]
    assert ended == 2
    assert "heat" in said
    ended, said = done["stage"]
    assert ended == 0, said
    assert json.loads((tmp_path / "layers" / "model" / "config.json").read_text())["num_hidden_layers"] == 1


def test_a_suite_and_a_model_are_scored(installed, code, tmp_path):
    (tmp_path / "helpdesk").mkdir()
    for name in ("chat", "mail"):
        small_base.pairs(tmp_path / "helpdesk" / f"{name}.tsv", 40)
    done = run(EVALUATE, installed, code, tmp_path)
    assert {name: ended for name, (ended, _) in done.items()} == {"suite": 0, "set": 0, "no file": 2}, done
    assert "there is no file cache/helpdesk/mail.tsv" in done["no file"][1]
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert "letters" in json.dumps(scores)


@pytest.mark.long
def test_a_fit_tries_the_route(installed, code, tmp_path):
    ended, said = run(FIT, installed, code, tmp_path)["fit"]
    assert ended in (0, NOT_BETTER), said
    result = FitResult.read(tmp_path / "m.fit" / "report.json")
    assert "pull together" in {run.route for run in result.runs}
