"""Dense folders of sentence-transformers are read as written, and what does not fit is refused."""

import json

import pytest
import torch
from safetensors.torch import save_file

from sentloom.encoder.heads import load_projection
from sentloom.errors import ModelError

WEIGHTS = {"linear.weight": torch.tensor([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0]]), "linear.bias": torch.tensor([1.0, 0.0])}
IDENTITY = "torch.nn.modules.linear.Identity"


def dense(folder, weights=WEIGHTS, **settings):
    config = {"in_features": 3, "out_features": 2, "activation_function": IDENTITY, **settings}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    return folder


def test_weights_by_hand(tmp_path):
    head = load_projection(dense(tmp_path))
    assert head(torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [[0.0, 7.0]]


def test_the_default_activation_is_tanh(tmp_path):
    dense(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"in_features": 3, "out_features": 2}))
    assert load_projection(tmp_path).activation_name == "tanh"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"in_features": 4}, r"linear\.weight in model\.safetensors has the shape 2 x 3. Expected 2 x 4"),
        ({"bias": False}, "contains the tensors linear.bias, linear.weight. Expected linear.weight"),
        ({"activation_function": "torch.nn.modules.activation.ReLU"}, "activation_function is"),
        ({"in_features": 0}, "in_features is 0. Expected a whole number, 1 or more"),
        ({"use_residual": True}, "residuals are not supported"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, message):
    with pytest.raises(ModelError, match=message):
        load_projection(dense(tmp_path, **settings))


def test_non_finite_weights_are_refused(tmp_path):
    with pytest.raises(ModelError, match=r"linear\.bias"):
        load_projection(dense(tmp_path, WEIGHTS | {"linear.bias": torch.tensor([1.0, torch.nan])}))
