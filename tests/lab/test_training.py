"""`train` on rows in memory, and its precision."""

import pytest
import torch

import sentloom
from sentloom.errors import InputError
from tests.engine.small_recipes import Kitchen


def test_train_takes_rows_in_memory_and_resumes(base, tmp_path):
    kitchen = Kitchen(tmp_path, base)
    recipe = kitchen.recipe("one", {"method": "simcse", "name": "learn"})
    texts = {"learn.data": [f"bano dalo {n}" for n in range(20)]}
    first = sentloom.lab.train(recipe, tmp_path / "out", set=texts)
    lines = []
    again = sentloom.lab.train(recipe, tmp_path / "out", set=texts, log=lines.append)
    assert first.rows == again.rows
    assert first.encoder.dimension == 32
    assert len([*(tmp_path / "out" / "inputs").iterdir()]) == 1
    assert len([*(tmp_path / "out" / "stages").iterdir()]) == 1


@pytest.mark.long
def test_training_in_bf16_is_another_stage_with_near_weights(base, tmp_path):
    kitchen = Kitchen(tmp_path, base)
    recipe = kitchen.recipe("one", {"method": "simcse", "name": "learn"})
    exact = sentloom.lab.train(recipe, tmp_path / "out", precision="fp32").encoder
    rough = sentloom.lab.train(recipe, tmp_path / "out", precision="bf16", device="cpu").encoder
    default = sentloom.lab.train(recipe, tmp_path / "out").encoder
    assert len([*(tmp_path / "out" / "stages").iterdir()]) == 2
    assert default.fingerprint() == exact.fingerprint() != rough.fingerprint()
    for exactly, roughly in zip(exact.parameters(), rough.parameters(), strict=True):
        assert roughly.dtype == torch.float32
        assert torch.allclose(exactly, roughly, atol=0.05)


@pytest.mark.long
def test_of_several_models_one_must_be_chosen(base, tmp_path):
    stage, variants = {"method": "simcse", "name": "learn"}, {"a": {}, "b": {"learn.steps": 1}}
    recipe = Kitchen(tmp_path, base).recipe("two", stage, variants=variants)
    first = tmp_path / "out" / "models" / "a" / "seed-1"
    alone = sentloom.lab.train(recipe, tmp_path / "out", variant="a").encoder
    assert alone.fingerprint() == sentloom.Encoder.load(first).fingerprint()
    trained = sentloom.lab.train(recipe, tmp_path / "out")
    with pytest.raises(InputError, match=r"several models: models/a/seed-1, models/b/seed-1\.") as refused:
        trained.encoder  # noqa: B018
    assert f'sentloom.Encoder.load("{first}")' in str(refused.value)
