"""Low-rank adapters: what learns, what is saved, and what is said without the package."""

import sys

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.lora import add_adapters, add_lora, require_peft, save_adapters, without_adapters, without_lora
from sentloom.errors import MissingPart
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture
def folder(tmp_path):
    return build_model_folder("bert", tmp_path / "bert")


def test_without_the_package_the_fix_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingPart, match="peft is not installed"):
        require_peft()


def test_an_encoder_without_adapters_stays_itself(folder):
    encoder = Encoder.load(folder)
    assert without_lora(encoder) is encoder


def test_adapters_alone_learn_and_are_added_to_the_weights(folder, tmp_path):
    pytest.importorskip("peft")
    encoder, base = Encoder.load(folder), Encoder.load(folder)
    torch.manual_seed(0)
    add_lora(encoder, rank=2, alpha=6)
    np.testing.assert_allclose(encoder.encode(SENTENCES), base.encode(SENTENCES), atol=1e-6)  # B starts at 0
    learning = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert learning
    assert all("lora_" in name for name in learning)
    with torch.no_grad():
        for name in sorted(learning):
            encoder.get_parameter(name).add_(0.1 * torch.randn(encoder.get_parameter(name).shape))
    query = encoder.backbone.model.encoder.layer[0].attention.self.query
    merged = without_lora(encoder)
    expected = query.base_layer.weight + 6 / 2 * query.lora_B["default"].weight @ query.lora_A["default"].weight
    torch.testing.assert_close(merged.backbone.model.encoder.layer[0].attention.self.query.weight, expected)
    assert merged.state_dict().keys() == base.state_dict().keys()
    np.testing.assert_allclose(merged.encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-4)
    assert np.abs(merged.encode(SENTENCES) - base.encode(SENTENCES)).max() > 1e-3
    merged.save(tmp_path / "model")
    np.testing.assert_allclose(Encoder.load(tmp_path / "model").encode(SENTENCES), merged.encode(SENTENCES), atol=1e-6)
    assert not list((tmp_path / "model").rglob("*adapter*"))


def test_adapters_alone_are_read_by_peft(folder, tmp_path):
    peft = pytest.importorskip("peft")
    model, base = (Encoder.load(folder).backbone.model.eval() for _ in range(2))
    add_adapters(model, rank=2, alpha=6)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape).half())  # which half precision keeps
    save_adapters(model, tmp_path / "adapter")
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    loaded = peft.PeftModel.from_pretrained(base, str(tmp_path / "adapter")).merge_and_unload()
    merged = without_adapters(model)
    for name, weight in loaded.state_dict().items():
        torch.testing.assert_close(weight, merged.state_dict()[name])
