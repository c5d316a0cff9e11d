"""An encoder keeps its pooling unless the recipe says otherwise; a preset's is for a raw language model."""

import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError, ModelError
from sentloom.lab.recipe import read_recipe
from sentloom.methods import METHODS
from tests.encoder.small_models import build_model_folder

MLM, SIMCSE = {"method": "mlm"}, {"method": "simcse"}
SELF_GUIDED = {"method": "self-guided", "head_width": 8}
PRESETS = [(method, preset) for method, kind in METHODS.items() for preset in kind.PRESETS]


@pytest.fixture(scope="session")
def mean_encoder(bert, tmp_path_factory):
    """The raw model, saved as an encoder with mean pooling."""
    folder = tmp_path_factory.mktemp("models") / "mean"
    Encoder.load(bert, pooling="mean").save(folder)
    return folder


def pooling_of(result):
    return str(Encoder.load(result.model).pooling)


def one_stage(tmp_path, method, preset, more=""):
    path = tmp_path / "recipe.yaml"
    path.write_text(f"base: b\nstages: [{{method: {method}, preset: {preset}, data: d{more}}}]")
    return read_recipe(path).resolve().stages[0]


@pytest.mark.parametrize(("method", "preset"), PRESETS)
def test_a_preset_s_pooling_is_for_a_raw_model_alone(tmp_path, bert, mean_encoder, method, preset):
    stage = one_stage(tmp_path, method, preset)
    assert stage.start_pooling(str(bert)) == METHODS[method].PRESETS[preset].get("pooling")
    if method == "self-guided" or preset == "promptbert":  # they are defined for one pooling
        with pytest.raises(InputError, match="the encoder has mean pooling, and the recipe states none"):
            stage.start_pooling(str(mean_encoder))
    else:
        assert stage.start_pooling(str(mean_encoder)) is None
    assert one_stage(tmp_path, method, preset, ", pooling: max").start_pooling(str(mean_encoder)) == "max"


def test_a_preset_s_pooling_is_not_for_a_causal_model(tmp_path):
    folder = build_model_folder("qwen3", tmp_path / "qwen3")
    assert one_stage(tmp_path, "simcse", "default").start_pooling(str(folder)) is None
    with pytest.raises(ModelError, match="pooling='last'"):
        one_stage(tmp_path, "simcse", "default").load(str(folder), None)
    assert str(one_stage(tmp_path, "simcse", "default", ", pooling: last").load(str(folder), None).pooling) == "last"


def test_an_encoder_keeps_its_pooling_and_nothing_is_said(kitchen, mean_encoder):
    (result,) = kitchen.run(SIMCSE, base=str(mean_encoder), pooling=None)
    assert (pooling_of(result), result.start.split(", ")[1]) == ("mean", "mean")
    assert not any("pooling" in line for line in kitchen.told)


def test_a_raw_model_gets_the_preset_s_pooling_and_a_later_stage_keeps_it(kitchen):
    (result,) = kitchen.run(SIMCSE, pooling=None)
    assert pooling_of(result) == "first"
    (result,) = kitchen.run(MLM, SIMCSE, pooling=None)  # mlm has no pooling of its own: mean, as of any raw model
    assert pooling_of(result) == "mean"
    assert not any("pooling" in line for line in kitchen.told)


def test_a_stage_that_changes_the_pooling_says_so(kitchen, mean_encoder):
    (result,) = kitchen.run(MLM, SIMCSE | {"pooling": "first"}, base=str(mean_encoder), pooling=None)
    assert pooling_of(result) == "first"
    said = "recipe: simcse: changes the encoder's pooling from mean to first, as the recipe says"
    assert [line for line in kitchen.told if "pooling" in line] == [said]


def test_scoring_a_base_with_another_pooling_is_said(kitchen, mean_encoder):
    kitchen.run(base=str(mean_encoder), pooling="max")
    assert "recipe: the base is scored with max pooling, not with its own (mean)" in kitchen.told


def test_a_pooling_for_inference_is_a_change_too(kitchen, mean_encoder):
    learn = {"method": "cross-lingual", "data": "pairs.tsv", "queue": 0, "inference_pooling": "max"}
    (result,) = kitchen.run(learn, base=str(mean_encoder), pooling=None)
    assert pooling_of(result) == "max"
    assert any("changes the encoder's pooling from mean to max" in line for line in kitchen.told)


def test_a_new_vocabulary_leaves_a_raw_model_the_preset_s_pooling(kitchen):
    (result,) = kitchen.run(SIMCSE | {"vocabulary": 300}, pooling=None)
    assert pooling_of(result) == "first"


def test_self_guided_does_not_change_a_pooling_unasked_and_says_so_before_anything_trains(kitchen, mean_encoder):
    with pytest.raises(InputError, match="Write pooling: first in the stage") as caught:
        kitchen.run(MLM, SELF_GUIDED, base=str(mean_encoder), pooling=None)
    assert caught.value.where == "stage self-guided"
    assert not kitchen.stages()
    (result,) = kitchen.run(SELF_GUIDED, base=str(mean_encoder), pooling="first")
    assert pooling_of(result) == "first"


def test_a_dry_run_says_that_a_stage_changes_the_pooling(sentloom, kitchen, mean_encoder):
    recipe = kitchen.recipe(SIMCSE, base=str(mean_encoder), evaluate=None)
    done = sentloom("lab", "train", recipe, "-o", kitchen.folder / "out", "--dry-run")
    assert "simcse: changes the encoder's pooling from mean to first, as the recipe says" in done.stdout


def test_self_guided_may_train_the_vector_that_an_encoder_pools_itself(kitchen, mean_encoder):
    pooled = SELF_GUIDED | {"vector": "pooled"}
    (result,) = kitchen.run(pooled, base=str(mean_encoder), pooling=None)
    assert pooling_of(result) == "mean"
    assert not any("pooling" in line for line in kitchen.told)
    (result,) = kitchen.run(pooled, pooling=None)
    assert pooling_of(result) == "first"  # of a raw model, the preset's
