"""CTranslate2: faults are explained, what it cannot carry is refused in a sentence, and 8-bit weights are close."""

import sys

import numpy as np
import pytest
import torch
from transformers import AutoConfig

from sentloom.encoder import Encoder
from sentloom.encoder.formats.ctranslate2 import CTRANSLATE, open_ctranslate
from sentloom.encoder.formats.registry import target_named
from sentloom.errors import MissingPart, ModelError
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / CTRANSLATE
    path.parent.mkdir()
    path.write_bytes(b"not a model")
    return tmp_path


def test_a_damaged_file(damaged):
    with pytest.raises(ModelError, match=r"model\.bin: the model does not load"):
        open_ctranslate(damaged, AutoConfig.for_model("bert"))


def test_torch_keeps_its_threads(bert, tmp_path):
    pytest.importorskip("ctranslate2")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Encoder.load(bert).export(tmp_path / "exported", to="ctranslate2")
        Encoder.load(tmp_path / "exported").encode("A dog.")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_missing_package(damaged, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingPart, match=r"(?i)pip install 'sentloom\[ctranslate2\]'"):
        open_ctranslate(damaged, AutoConfig.for_model("bert"))


@pytest.mark.parametrize(
    ("family", "pooling", "problem"),
    [
        ("mpnet", "mean", "no encoder for mpnet models"),
        ("t5", "decoder-first", "no encoder for t5 models"),
        ("bert", "first-last", "the last layer only, and the pooling is mean@1,-1"),
    ],
)
def test_what_it_cannot_carry(family, pooling, problem, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family), pooling=pooling)
    with pytest.raises(ModelError, match=problem):
        encoder.export(tmp_path / "new", to="ctranslate2")
    assert not (tmp_path / "new").exists()


def test_rounded_weights_are_close(bert, tmp_path):
    encoder = Encoder.load(bert)
    target_named("ctranslate2-int8").write(encoder, tmp_path)
    vectors, expected = Encoder.load(tmp_path).encode(SENTENCES), encoder.encode(SENTENCES)
    cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.99
    assert (tmp_path / CTRANSLATE).is_file()


@pytest.mark.long
@pytest.mark.parametrize("family", ["distilbert", "roberta", "xlm-roberta"])
def test_every_family(family, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family))
    done = encoder.export(tmp_path / "new", to="ctranslate2")
    np.testing.assert_allclose(Encoder.load(done.folder).encode(SENTENCES), encoder.encode(SENTENCES), atol=5e-5)
