"""The graph gives the states that are pooled, for every family, pooling and shape of a batch."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.formats import onnx_graph
from sentloom.encoder.formats.onnx_graph import PooledStates, write_onnx
from sentloom.errors import ModelError
from sentloom.export.export import export
from tests.encoder.small_models import FAMILIES, SENTENCES, build_model_folder


def padded(rows, value):
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])
    return ids, torch.tensor([[int(at < len(row)) for at in range(longest)] for row in rows])


def test_layers_are_averaged(bert):
    encoder = Encoder.load(bert, pooling="mean@0,-1")
    ids, mask = padded(encoder.tokenize(SENTENCES[:3]), encoder.backbone.padding)
    with torch.no_grad():
        states = PooledStates(encoder)(ids, mask)
        pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    expected = encoder.encode(SENTENCES[:3])
    unit = torch.nn.functional.normalize(pooled, dim=-1).numpy() if encoder.unit_length else pooled.numpy()
    np.testing.assert_allclose(unit, expected, atol=1e-5)


def test_decoder_first_is_at_every_token(tmp_path):
    encoder = Encoder.load(build_model_folder("t5", tmp_path / "t5"), pooling="decoder-first")
    ids, mask = padded(encoder.tokenize(SENTENCES[:3]), encoder.backbone.padding)
    with torch.no_grad():
        states = PooledStates(encoder)(ids, mask)
    assert states.shape[:2] == ids.shape
    np.testing.assert_allclose(states[:, 0].numpy(), encoder.encode(SENTENCES[:3]), atol=1e-5)
    assert torch.equal(states[:, 0], states[:, -1])


def test_the_encoder_itself_is_not_changed(bert):
    encoder = Encoder.load(bert)
    before = encoder.encode(SENTENCES)
    PooledStates(encoder)
    assert np.array_equal(encoder.encode(SENTENCES), before)


def test_a_model_beyond_the_limit_of_a_file_is_refused(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "LARGEST", 1000)
    with pytest.raises(ModelError, match="2 GB, the limit of an ONNX file"):
        write_onnx(Encoder.load(bert), tmp_path / "model.onnx")


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family))
    done = export(encoder, "onnx", tmp_path / "new")
    np.testing.assert_allclose(Encoder.load(done.folder).encode(SENTENCES), encoder.encode(SENTENCES), atol=5e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "pooling"), [("bert", "mean@1,-1"), ("t5", "decoder-first"), ("mt5", "decoder-first")]
)
def test_poolings_that_only_sentloom_has(family, pooling, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family), pooling=pooling)
    done = export(encoder, "onnx", tmp_path / "new")
    loaded = Encoder.load(done.folder)
    assert loaded.pooling.layers == (-1,)
    np.testing.assert_allclose(loaded.encode(SENTENCES), encoder.encode(SENTENCES), atol=5e-5)
