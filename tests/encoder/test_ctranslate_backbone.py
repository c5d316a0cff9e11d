"""Opening a CTranslate2 folder: a missing package and a damaged file are explained. tests/export compares vectors."""

import sys

import pytest
from transformers import AutoConfig

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


def test_a_missing_package(damaged, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingPart, match=r"(?i)pip install 'sentloom\[ctranslate2\]'"):
        open_ctranslate(damaged, AutoConfig.for_model("bert"))
