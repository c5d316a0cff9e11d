"""Opening a CTranslate2 folder: torch keeps its threads, and faults are explained. tests/export compares vectors."""

import sys

import pytest
import torch
from transformers import AutoConfig

from sentloom.encoder import Encoder
from sentloom.encoder.ctranslate_backbone import open_ctranslate
from sentloom.encoder.model_files import CTRANSLATE
from sentloom.errors import MissingPart, ModelError


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / CTRANSLATE
    path.parent.mkdir()
    path.write_bytes(b"not a model")
    return tmp_path


def test_a_damaged_file(damaged):
    with pytest.raises(ModelError, match=r"model\.bin: the model does not load"):
        open_ctranslate(damaged, AutoConfig.for_model("bert"))


def test_torch_keeps_its_threads(model_folders, tmp_path):
    pytest.importorskip("ctranslate2")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Encoder.load(model_folders["bert"]).export(tmp_path / "exported", to="ctranslate2")
        Encoder.load(tmp_path / "exported").encode("A dog.")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_missing_package(damaged, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingPart, match=r"(?i)pip install 'sentloom\[ctranslate2\]'"):
        open_ctranslate(damaged, AutoConfig.for_model("bert"))
