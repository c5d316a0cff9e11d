"""Stages that learn from a cross-encoder: its scores are computed once, and it counts as what it is."""

import shutil

import pytest
from accelerate import Accelerator

from sentloom.errors import RecipeError
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe
from tests.encoder.small_models import SENTENCES
from tests.search.small_cross_encoders import build_cross_encoder

LEARN = {"method": "margin-mse", "data": "triplets.tsv", "teacher": "teacher", "steps": 2}


@pytest.fixture
def triplets(kitchen):
    """Triplets, and a small cross-encoder beside them."""
    rows = [f"where {text}\tthere {text[:20]}\tno {text[::-1]}" for text in SENTENCES]
    (kitchen.folder / "triplets.tsv").write_text("\n".join(["anchor\tpositive\tnegative", *rows]) + "\n", "utf-8")
    return build_cross_encoder(kitchen.folder / "teacher")


def stored(kitchen):
    return {path.name: path.stat().st_mtime_ns for path in kitchen.folder.glob("out/vectors/teacher-*.npy")}


def test_scores_are_computed_once_for_seeds_and_methods(kitchen, triplets):
    first = kitchen.run(LEARN, seeds=[1, 2])
    assert first[0].stages[0]["fingerprint"] != first[1].stages[0]["fingerprint"]
    made = stored(kitchen)
    assert len(made) == 1
    kitchen.run(LEARN | {"method": "distill"})
    assert stored(kitchen) == made
    assert len(kitchen.stages()) == 3


def test_a_teacher_counts_as_what_it_is_wherever_it_lies(kitchen, triplets):
    kitchen.run(LEARN)
    shutil.copytree(triplets, kitchen.folder / "elsewhere")
    kitchen.run(LEARN | {"teacher": "elsewhere"})
    assert len(kitchen.stages()) == 1
    build_cross_encoder(kitchen.folder / "other", seed=1)
    kitchen.run(LEARN | {"teacher": "other"})
    assert len(kitchen.stages()) == 2


def test_a_missing_teacher_is_reported_before_anything_runs(kitchen, triplets):
    shutil.rmtree(triplets)
    with pytest.raises(RecipeError, match=r'there is no file or folder "\./teacher"'):
        kitchen.run(LEARN | {"teacher": "./teacher"})
    assert not kitchen.stages()


def test_the_forecast_has_the_time_of_the_teacher(kitchen, triplets):
    plan = read_recipe(kitchen.recipe(LEARN)).resolve()
    (ahead,) = forecast(plan, Accelerator(cpu=True))
    assert ahead.before > 0
    assert ahead.steps == 2
    assert not stored(kitchen)
