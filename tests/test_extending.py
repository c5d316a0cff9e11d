"""docs/extending.md is installed by pip as it is printed, and its method and route are used by the real commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.fitting.result import FitResult
from sentloom.methods.registry import load, offers
from tests.fitting import small_base

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def code():
    return dict(re.findall(r"```(toml|python|yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))


@pytest.fixture(scope="module")
def package(code, tmp_path_factory):
    """A folder with the package in it, installed by pip without the network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(code["toml"])
    (source / "sentloom_pull.py").write_text(code["python"])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", target, source], check=True)
    return target


@pytest.fixture
def installed(package, monkeypatch):
    """The package is on the path; before and after, methods are looked for again."""
    monkeypatch.syspath_prepend(package)
    for found in (offers, load):
        found.cache_clear()
    yield
    for found in (offers, load):
        found.cache_clear()
    sys.modules.pop("sentloom_pull", None)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.build_base(tmp_path_factory.mktemp("base"))


@pytest.mark.usefixtures("installed")
def test_a_recipe_trains_the_method(code, sentloom, base, tmp_path):
    small_base.pairs(tmp_path / "pairs.tsv", 20)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(code["yaml"].replace("embedded", str(base)))
    done = sentloom("train", recipe, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    unknown = sentloom("train", recipe, "-o", tmp_path / "other", "--set", "pull-together.heat=1")
    assert unknown.returncode == 2
    assert "heat" in unknown.stderr


@pytest.mark.usefixtures("installed")
def test_a_fit_tries_the_route(sentloom, base, tmp_path):
    data = small_base.pairs(tmp_path / "pairs.tsv", 300)
    done = sentloom("fit", data, "-o", tmp_path / "m", "--base", base, "--budget", "120steps", "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    result = FitResult.read(tmp_path / "m.fit" / "report.json")
    assert "pull together" in {run.route for run in result.runs}
