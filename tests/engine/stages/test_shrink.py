"""Fewer layers as a stage: before the training of a student, forecast, and in a recipe there and back."""

import pytest
import yaml
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, to_yaml
from sentloom.engine.runner import prepare
from sentloom.errors import RecipeError
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe
from tests.encoder.small_models import build_model_folder

FEW = {"batch": 4, "steps": 2, "learning_rate": 1e-3}


def plan(work, base, **values):
    fewer = stage("shrink", name="fewer", **values)
    distil = stage("mse-distillation", name="distil", data=[str(work / "texts.txt")], source=str(base), **FEW)
    return Plan("p", base=str(base), stages=(fewer, distil))


def test_a_decoder_first_t5_becomes_an_encoder_with_mean_pooling(work, tmp_path):
    base = tmp_path / "decoder-first"
    Encoder.load(build_model_folder("t5", tmp_path / "t5"), pooling="decoder-first").save(base)
    (runner,) = prepare([plan(work, base)], tmp_path / "out", Accelerator(cpu=True), lambda text: None)
    (result,) = runner.run()
    assert result.stages[0]["result"] == "3 layers before, 2 after"
    small = Encoder.load(result.model)
    assert (str(small.pooling), small.backbone.num_layers) == ("mean", 2)
    assert not any("decoder" in name for name, _ in small.named_parameters())


def test_a_forecast_takes_layers_too(work, bert):
    fewer, distil = forecast(plan(work, bert, layers=1, pooling="first"), Accelerator(cpu=True))
    assert (fewer.steps, fewer.method, distil.steps) == (0, "shrink", 2)


def test_in_a_recipe_there_and_back(tmp_path, bert):
    stages = [{"method": "shrink", "name": "fewer", "layers": 2}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"base": str(bert), "stages": stages}))
    read = read_recipe(tmp_path / "recipe.yaml").resolve()
    (tmp_path / "again.yaml").write_text(to_yaml(read))
    assert read_recipe(tmp_path / "again.yaml").resolve() == read
    with pytest.raises(RecipeError, match="layers"):
        stage("shrink", layers=0)
