"""docs/extending.md is installed as it is printed, and its method and route are used by the real commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.fitting.result import FitResult
from tests.fitting import small_base

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def code():
    return dict(re.findall(r"```(toml|python|yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))


@pytest.fixture(scope="module")
def installed(code, tmp_path_factory):
    """A folder with the package in it, installed by pip without the network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(code["toml"])
    (source / "sentloom_pull.py").write_text(code["python"])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", target, source], check=True)
    return target


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def run(installed, tmp_path):
    """The command in a process of its own, as a user has it."""

    def call(*arguments):
        path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", "sentloom", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return call


def test_a_recipe_trains_the_method(code, run, base, tmp_path):
    small_base.pairs(tmp_path / "pairs.tsv", 20)
    (tmp_path / "recipe.yaml").write_text(code["yaml"].replace("embedded", str(base)))
    done = run("train", "recipe.yaml", "-o", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    unknown = run("train", "recipe.yaml", "-o", "other", "--set", "pull-together.heat=1")
    assert unknown.returncode == 2
    assert "heat" in unknown.stderr


def test_a_fit_tries_the_route(run, base, tmp_path):
    small_base.pairs(tmp_path / "pairs.tsv", 300)
    done = run("fit", "pairs.tsv", "-o", "m", "--base", base, "--budget", "120steps", "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    result = FitResult.read(tmp_path / "m.fit" / "report.json")
    assert "pull together" in {run.route for run in result.runs}
