"""The recipes that come with the package are sound, and found by name."""

import itertools
import re
import statistics

import pytest

from sentloom.errors import InputError
from sentloom.pipeline.builtin import find_recipe, shipped
from sentloom.pipeline.needs import needs
from sentloom.pipeline.recipe import read_recipe
from tests.paths import ROOT


@pytest.fixture(params=list(shipped()))
def recipe(request):
    return read_recipe(find_recipe(request.param))


def test_every_recipe_is_sound_and_has_a_title(recipe):
    plans = [recipe.resolve(name) for name in recipe.variants] or [recipe.resolve()]
    assert all(plan.title and plan.evaluate for plan in plans)


def test_published_means_are_those_of_their_columns(recipe):
    for name in recipe.variants:
        scores = dict(recipe.resolve(name).published)
        if "mean" in scores:
            mean = scores.pop("mean")
            seven = len(scores) == 7
            assert seven or len(scores) == 5  # STS, or special domains, which are printed with one decimal
            # SBERT-NLI is printed as 74.89, its columns give 74.86
            assert mean == pytest.approx(statistics.mean(scores.values()), abs=0.035 if seven else 0.051), name


def test_the_recipe_to_copy_from_the_page_on_translations_is_sound(tmp_path):
    page = (ROOT / "docs/cross-lingual.md").read_text("utf-8")
    (tmp_path / "german.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1], "utf-8")
    plan = read_recipe(tmp_path / "german.yaml").resolve()
    vocabulary, stage = plan.stages
    assert (vocabulary.method, vocabulary.options.size) == ("vocabulary", 8000)
    assert (stage.method, stage.options.queue) == ("cross-lingual", 8192)
    assert plan.evaluate.sets == ("test.tsv",)


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(InputError, match="docstrings"):
        find_recipe("docstring")
    assert find_recipe("docstrings").suffix == ".yaml"


@pytest.fixture(params=list(shipped()))
def path(request):
    return shipped()[request.param]


def test_the_head_of_every_recipe_says_where_its_data_comes_from(path):
    lines = path.read_text("utf-8").splitlines()
    head = "\n".join(itertools.takewhile(lambda line: line.startswith("#"), lines))
    assert "\n# Data: " in head
    assert "licence" in head
    variables = set(re.findall(r"\$\{(\w+)", path.read_text("utf-8")))
    assert variables <= set(re.findall(r"\w+", head))


def test_every_plan_prints_offline_and_without_data(path, sentloom, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for variable in re.findall(r"\$\{(\w+)", path.read_text("utf-8")):
        monkeypatch.delenv(variable, raising=False)
    recipe = read_recipe(path)
    plans = [recipe.resolve(name) for name in recipe.variants] or [recipe.resolve()]
    absent = [one for plan in plans for one in needs(plan)]
    if not absent:
        assert path.stem == "docstrings"  # all it needs comes with the packages
        return
    done = sentloom("train", path, "-o", tmp_path / "out", "--dry-run")
    assert done.returncode == (0 if all(one.on_hub for one in absent) else 2)
    assert "Traceback" not in done.stderr
    for plan in plans:
        assert plan.name in done.stdout
    for one in absent:
        said = "to be downloaded from the hub: {} {}" if one.on_hub else "missing: {}, {}"
        assert said.format(one.what, one.name) in done.stdout
    assert not (tmp_path / "out").exists()
