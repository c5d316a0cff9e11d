"""Training as a stage: adapters instead of all weights, fewer dimensions, runs that continue shorter ones."""

import numpy as np
import pytest
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.errors import InputError, RecipeError
from sentloom.progress import OutOfTime
from tests.encoder.small_models import SENTENCES

SIMCSE = {"method": "simcse", "head": False}


def test_adapters_are_in_the_result_and_a_resumed_run_is_the_same(kitchen):
    pytest.importorskip("peft")
    lora = SIMCSE | {"lora": {"rank": 2, "alpha": 4}, "learning_rate": 0.01, "snapshots": 2}
    (result,) = kitchen.run(lora)
    (again,) = kitchen.run(lora, out="again")
    before, after = Encoder.load(kitchen.base, pooling="first"), Encoder.load(result.model)
    assert after.state_dict().keys() == before.state_dict().keys()
    assert np.abs(after.encode(SENTENCES) - before.encode(SENTENCES)).max() > 1e-4
    assert after.fingerprint() == result.stages[0]["fingerprint"] == again.stages[0]["fingerprint"]
    (snapshot,) = (kitchen.folder / "out/stages").glob("*/snapshots/step-00000004")
    np.testing.assert_array_equal(Encoder.load(snapshot).encode(SENTENCES[:2]), after.encode(SENTENCES[:2]))
    names = [name for name, tensor in before.state_dict().items() if not tensor.equal(after.state_dict()[name])]
    assert all("embeddings" not in name for name in names)


def test_what_is_refused_with_adapters(kitchen):
    with pytest.raises(RecipeError, match="freeze_layers with lora"):
        stage("simcse", data="a.txt", lora={"rank": 2}, freeze_layers=1)
    with pytest.raises(RecipeError, match="rank"):
        stage("simcse", data="a.txt", lora={"rank": 0})


def test_the_model_says_which_dimensions_it_was_trained_for(kitchen):
    (result,) = kitchen.run(SIMCSE | {"dimensions": [32, 16, 8]})
    encoder = Encoder.load(result.model)
    assert encoder.dimensions == (32, 16, 8)
    assert encoder.encode(SENTENCES, dimension=8).shape == (8, 8)
    with pytest.raises(InputError, match="40 dimensions of vectors that have 32"):
        kitchen.run(SIMCSE | {"dimensions": [40]}, out="other")


def test_the_length_comes_from_the_data_and_cut_texts_are_told(kitchen):
    texts = [f"{' '.join(['a'] * n)} {row}" for row, n in enumerate([5, 6, 7, 8] * 9 + [9, 9, 90, 90])]
    (kitchen.folder / "long.txt").write_text("\n".join(texts) + "\n", "utf-8")
    (result,) = kitchen.run(SIMCSE | {"data": "long.txt", "max_length": "auto"}, max_length=None)
    cut = result.stages[0]["cut"]
    assert (cut["texts"], cut["cut"]) == (40, 2)
    said = f"5.0% of the texts are cut at {cut['length']} tokens"
    assert said in result.stages[0]["result"]
    assert any(line.endswith(said) for line in kitchen.told)
    whole = Encoder.load(kitchen.base).tokens.max_length
    assert cut["length"] < whole == Encoder.load(result.model).tokens.max_length  # cut for training only
    with pytest.raises(RecipeError, match="max_length"):
        stage("simcse", data="a.txt", max_length="automatic")


def test_a_stage_out_of_time_goes_on_shorter_and_longer_with_the_bits_of_a_whole_one(bert, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    schedule = {"schedule": "warmup-stable-decay", "warmup_steps": 2, "decay": 0.25}

    def run(steps, out, limits=None):
        values = {"batch": 4, "steps": steps, "learning_rate": 1e-2, "pooling": "mean", **schedule}
        learn = stage("simcse", name="learn", data=str(tmp_path / "texts.txt"), **values)
        plan = Plan("p", base=str(bert), stages=(learn,))
        (runner,) = prepare([plan], tmp_path / out, Accelerator(cpu=True), lambda text: None, limits)
        (result,) = runner.run()
        (record,) = result.stages
        return record["fingerprint"], record["outcome"]["continued_at"]

    with pytest.raises(OutOfTime) as late:
        run(100, "out", {"learn": 0.0})
    assert (late.value.stage, late.value.step) == ("learn", 2)
    assert not list((tmp_path / "out/stages").glob("*"))
    assert run(3, "out", {"learn": 0.0}) == (run(3, "alone")[0], 2)
    assert run(8, "out") == (run(8, "whole")[0], 2)
    assert run(12, "out") == (run(12, "whole")[0], 6)
