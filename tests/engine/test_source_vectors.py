"""Stages that learn from a frozen source: its vectors are made once a run folder, and it counts as what it is."""

import io
import shutil

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.engine.rows import read_data
from sentloom.errors import RecipeError
from sentloom.lab.recipe import read_recipe

LEARN = {"method": "cross-lingual", "data": "pairs.tsv", "shape": "parallel", "queue": 10}


@pytest.fixture
def source(kitchen):
    """Another model than the base."""
    encoder = Encoder.load(kitchen.base, pooling="mean")
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.05)
    encoder.save(kitchen.folder / "source")
    return "source"


def vectors(kitchen):
    return {path.name: path.stat().st_mtime_ns for path in kitchen.folder.glob("out/vectors/*.npy")}


@pytest.mark.long
def test_vectors_are_made_once_for_seeds_variants_and_methods(kitchen, source):
    first = kitchen.run(LEARN | {"source": source}, seeds=[1, 2])
    made = vectors(kitchen)
    assert len(made) == 1
    assert first[0].stages[0]["fingerprint"] != first[1].stages[0]["fingerprint"]
    kitchen.run(LEARN | {"source": source, "queue": 0})
    mse = {"method": "mse-distillation", "data": "pairs.tsv", "shape": "parallel", "source": source}
    kitchen.run(mse)
    assert vectors(kitchen) == made
    assert len(kitchen.stages()) == 4
    kitchen.run(LEARN | {"source": source, "source_pooling": "max"})
    assert len(vectors(kitchen)) == 2


def test_vectors_are_made_once_for_all_seeds(kitchen, source):
    first = kitchen.run(LEARN | {"source": source, "steps": 1}, seeds=[1, 2])
    assert len(vectors(kitchen)) == 1
    assert first[0].stages[0]["fingerprint"] != first[1].stages[0]["fingerprint"]


def test_a_source_counts_as_what_it_is_wherever_it_lies(kitchen, source, monkeypatch):
    kitchen.run(LEARN | {"source": source})
    made = kitchen.stages()
    shutil.copytree(kitchen.folder / "source", kitchen.folder / "elsewhere")
    monkeypatch.setenv("TEACHER", "elsewhere")
    kitchen.run(LEARN | {"source": "${TEACHER}"})
    assert kitchen.stages() == made
    kitchen.run(LEARN | {"source": str(kitchen.base)})
    assert len(kitchen.stages()) == 2
    monkeypatch.delenv("TEACHER")
    with pytest.raises(RecipeError, match="TEACHER"):
        read_recipe(kitchen.recipe(LEARN | {"source": "${TEACHER}"}))


def test_a_second_stage_learns_from_what_the_first_gave(kitchen):
    result = kitchen.run(LEARN, LEARN | {"name": "again", "source_encoder": "trained", "queue": 0})[0]
    assert len(vectors(kitchen)) == 1  # of the frozen one alone
    assert result.stages[1]["input"] == result.stages[0]["fingerprint"]


def test_the_bootstrap_takes_the_two_languages_as_views(kitchen):
    stage = kitchen.plan({"method": "bootstrapped", "data": "pairs.tsv", "shape": "parallel"}).stages[0]
    data = stage.fit(read_data(stage))
    assert str(data.shape) == "parallel"
    kitchen.run({"method": "bootstrapped", "data": "pairs.tsv", "shape": "parallel", "predictor_width": 2})


def overwritten(whole):
    """Half of the rows are 1e3, and the shape is right."""
    vectors = np.load(io.BytesIO(whole))
    vectors[: len(vectors) // 2] = 1e3
    file = io.BytesIO()
    np.save(file, vectors)
    return file.getvalue()


DAMAGES = {"emptied": lambda whole: b"", "cut": lambda whole: whole[:-100], "longer": lambda whole: whole + b"more"}
DAMAGES |= {"overwritten": overwritten, "one bit": lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, marks=() if name == "overwritten" else pytest.mark.long, id=name)
        for name, damage in DAMAGES.items()
    ],
)
def test_a_damaged_file_of_vectors_is_made_again(kitchen, source, damage):
    kitchen.run(LEARN | {"source": source})
    (path,) = kitchen.folder.glob("out/vectors/*.npy")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    kitchen.run(LEARN | {"source": source, "steps": 2})
    assert path.read_bytes() == whole
    assert len(vectors(kitchen)) == 1
    assert any(f"{path.name} is damaged: its vectors are computed again" in line for line in kitchen.told)
