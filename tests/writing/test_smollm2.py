"""smollm2 is unpacked from its GGUF file; for all kinds but queries it has adapters."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from sentloom.data.shapes import Shape
from sentloom.encoder.locate import locate
from sentloom.errors import InputError
from sentloom.writing.causal import Causal
from sentloom.writing.models import (
    LEARNED,
    family_of,
    nli_folder,
    version_for,
    with_adapters,
)
from sentloom.writing.synthesize import WritingTask
from tests.small_data import build_dataset


@pytest.mark.parametrize(
    ("kinds", "shown", "expected"),
    [
        (("entailment", "contradiction"), False, "smollm2-nli"),
        (("contradiction",), False, "smollm2-nli"),
        (("entailment", "contradiction"), True, "smollm2"),
        (("query",), False, "smollm2"),
        (("paraphrase",), False, "smollm2-nli"),
        (("query", "paraphrase"), True, "smollm2"),
    ],
)
def test_the_kinds_choose_the_version(kinds, shown, expected):
    assert version_for("smollm2", kinds, shown=shown) == expected
    shots = build_dataset(Shape.PAIRS, [("a", "b")]) if shown else None
    assert WritingTask(kinds, shots).model("smollm2") == expected
    assert WritingTask(kinds, shots).model("some/folder") == "some/folder"


def test_kinds_of_both_versions_are_refused():
    with pytest.raises(
        InputError, match=r"writes queries, and another one entailment and paraphrase(.|\n)*two ledgers"
    ):
        version_for("smollm2", ("entailment", "query", "paraphrase"), shown=False)


def test_adapters_are_added_to_their_layers(tmp_path):
    """alpha/rank = 3/2; B A of (2, 1) and (1, 3)."""
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 3.0}))
    name = "base_model.model.layer.{}.weight"
    down, up = torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([[2.0], [-4.0]])
    save_file(
        {name.format("lora_A"): down.half(), name.format("lora_B"): up.half()}, tmp_path / "adapter_model.safetensors"
    )
    weights = {"layer.weight": torch.ones(2, 3), "other.weight": torch.ones(1)}
    changed = with_adapters(weights, tmp_path)
    assert changed["layer.weight"].tolist() == [[4.0, 7.0, 1.0], [-5.0, -11.0, 1.0]]
    assert changed["other.weight"] is weights["other.weight"]


def test_the_adapters_in_the_package_are_small_and_whole():
    file = LEARNED / "adapter_model.safetensors"
    assert file.stat().st_size < 20_000_000
    tensors = load_file(file)
    rank = json.loads((LEARNED / "adapter_config.json").read_text())["r"]
    downs = [name for name in tensors if ".lora_A." in name]
    assert len(tensors) == 2 * len(downs)
    for name in downs:
        up = tensors[name.replace(".lora_A.", ".lora_B.")]
        assert tensors[name].shape[0] == up.shape[1] == rank
        assert up.isfinite().all()
        assert up.abs().sum() > 0, "a layer that has not learned"


@pytest.mark.long
def test_the_writer_is_unpacked_once(downloaded):
    """One minute: the file has 49,152 tokens and 135 million weights."""
    pytest.importorskip("gguf")
    folder = locate(downloaded("smollm2"))
    made = (folder / "model.safetensors").stat().st_mtime_ns
    assert locate("smollm2") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    model = family_of(folder).load(folder)
    assert type(model) is Causal
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008  # as published
    assert model.text_of(model.bare(["Hello there."])[0]) == "Hello there."


@pytest.mark.long
def test_the_trained_version_is_the_published_one_with_adapters(downloaded):
    """Two minutes."""
    pytest.importorskip("gguf")
    base, folder = locate(downloaded("smollm2")), nli_folder()
    published, trained = (load_file(version / "model.safetensors") for version in (base, folder))
    changed = {name for name in published if not torch.equal(published[name], trained[name])}
    assert len(changed) == 210  # seven layers in each of 30 blocks
    assert nli_folder() == folder
    model = family_of(folder).load(folder)
    assert model.learned is not None
    assert (model.source_length, model.target_length) == (64, 40)
