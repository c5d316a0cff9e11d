"""From the values of a recipe to a plan: what is located, what is filled in, and every fault with its line."""

import pytest

from sentloom.errors import RecipeError
from sentloom.lab.recipe import read_recipe

SIMCSE = "base: embedded\nstages:\n  - {name: one, method: simcse, data: texts.txt}\n"


@pytest.fixture
def plan_of(tmp_path):
    def read(text):
        (tmp_path / "recipe.yaml").write_text(text, "utf-8")
        return read_recipe(tmp_path / "recipe.yaml").resolve(None)

    return read


@pytest.fixture
def faults_of(plan_of):
    def read(text):
        with pytest.raises(RecipeError) as error:
            plan_of(text)
        return [(problem.place, problem.problem, problem.expected) for problem in error.value.problems]

    return read


def test_paths_are_found_beside_the_recipe_first(plan_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("One.\n")
    assert plan_of(SIMCSE).stages[0].data == (str(tmp_path / "texts.txt"),)
    assert plan_of(SIMCSE).base == "embedded"
    assert plan_of(SIMCSE.replace("texts.txt", "owner/name")).stages[0].data == ("owner/name",)


def test_variables_are_filled_in_or_a_fault(plan_of, faults_of, tmp_path, monkeypatch):
    text = SIMCSE.replace("texts.txt", "'${PLACE}/texts.txt'")
    monkeypatch.setenv("PLACE", str(tmp_path))
    (tmp_path / "texts.txt").write_text("One.\n")
    assert plan_of(text).stages[0].data == (str(tmp_path / "texts.txt"),)
    monkeypatch.delenv("PLACE")
    ((place, problem, _),) = faults_of(text)
    assert (place.split(",")[0], problem) == ("line 3", "the environment variable PLACE is not set")
    assert plan_of(text.replace("${PLACE}", f"${{PLACE:-{tmp_path}}}")).stages[0].data == (str(tmp_path / "texts.txt"),)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("stage:two", "that stage does not come before this one"),
        ("stage:none", "there is no such stage"),
        ("stage:zero", "that stage, of the method simcse, produces something else"),
    ],
)
def test_a_reference_must_name_an_earlier_stage_of_the_right_kind(data, reason, faults_of):
    text = f"""\
base: embedded
stages:
  - {{name: zero, method: simcse, data: texts.txt}}
  - {{name: one, method: simcse, data: "{data}"}}
  - {{name: two, method: views, kind: spans, data: texts.txt}}
"""
    ((place, problem, _),) = faults_of(text)
    assert place.startswith("line 4")
    assert problem.endswith(reason)


def test_every_fault_is_reported_at_once(faults_of):
    text = (
        "stages:\n  - {name: one, method: simcse, data: a.txt, stepps: 3}\n  - {name: one, method: mlm, data: b.txt}\n"
    )
    faults = faults_of(text)
    assert len(faults) == 3  # no base, an unknown key, a name that is taken
    assert [place.split(",")[0] for place, _, _ in faults if place] == ["line 2", "line 3"]
    assert any("is taken" in problem for _, problem, _ in faults)
    assert any("steps" in expected for _, _, expected in faults)  # the nearest key is named
