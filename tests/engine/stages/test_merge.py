"""Merging as a stage: the base and what was trained from it, reused, forecast and refused."""

import pytest
import torch
import yaml
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.needs import needs
from sentloom.engine.plan import Plan, to_yaml
from sentloom.engine.runner import prepare
from sentloom.errors import InputError, RecipeError
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe
from tests.encoder.small_models import SENTENCES, build_model_folder

FEW = {"batch": 4, "steps": 2, "learning_rate": 1e-2, "pooling": "mean"}


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    return [str(tmp_path / "texts.txt")]


def plan(base, texts, **merging):
    learn = stage("simcse", name="learn", data=texts, **FEW)
    merged = stage("merge", name="merged", models=["base", "stage:learn"], **merging)
    return Plan("p", base=str(base), stages=(learn, merged), seeds=(1, 2))


def run(plan, folder):
    (runner,) = prepare([plan], folder, Accelerator(cpu=True), lambda text: None)
    return runner, runner.run()


def test_the_result_is_between_the_base_and_the_trained_encoder(tmp_path, bert, texts):
    runner, results = run(plan(bert, texts, weights=[3, 1]), tmp_path / "out")
    learned, merged = (Encoder.load(runner.artifacts[name].source).state_dict() for name in ("learn", "merged"))
    base = Encoder.load(bert).state_dict()
    name = next(name for name, tensor in base.items() if not torch.equal(tensor, learned[name]))
    torch.testing.assert_close(merged[name], 0.75 * base[name] + 0.25 * learned[name])
    record = results[1].stages[1]
    assert (record["result"], record["once"]) == ("merged 0.75 + 0.25", False)
    assert record["fingerprint"] == Encoder.load(results[1].model).fingerprint()
    assert len(list((tmp_path / "out/stages").glob("merged-*"))) == 2  # one for each seed
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/stages").glob("merged-*/result.json")}
    run(plan(bert, texts, weights=[3, 1]), tmp_path / "out")
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "out/stages").glob("merged-*/result.json")}


def test_a_forecast_merges_too(tmp_path, bert, texts):
    learn, merged = forecast(plan(bert, texts), Accelerator(cpu=True))
    assert (learn.steps, merged.steps, merged.method) == (2, 0, "merge")
    assert needs(plan(bert, texts)) == []


def test_in_a_recipe_there_and_back(tmp_path, bert, texts):
    stages = [
        {"name": "learn", "method": "simcse", "data": "texts.txt"},
        {"name": "merged", "method": "merge", "models": ["base", "stage:learn"], "weights": [1, 2]},
    ]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"base": str(bert), "stages": stages}))
    read = read_recipe(tmp_path / "recipe.yaml").resolve()
    assert read.stages[1].options.weights == (1.0, 2.0)
    (tmp_path / "again.yaml").write_text(to_yaml(read))
    assert read_recipe(tmp_path / "again.yaml").resolve() == read


def test_what_is_refused(tmp_path, bert, texts):
    with pytest.raises(RecipeError, match="two or more"):
        stage("merge", models=["base"])
    with pytest.raises(RecipeError, match="3 weights for 2 models"):
        stage("merge", models=["base", "other"], weights=[1, 2, 3])
    stages = [{"method": "merge", "models": ["base", "stage:nothing"]}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"base": str(bert), "stages": stages}))
    with pytest.raises(RecipeError, match="stage:nothing"):
        read_recipe(tmp_path / "recipe.yaml").resolve()
    other = build_model_folder("distilbert", tmp_path / "other")
    unlike = Plan("p", base=str(bert), stages=(stage("merge", models=["base", str(other)]),))
    with pytest.raises(InputError, match="one is a bert model and the other a distilbert model"):
        run(unlike, tmp_path / "out")
