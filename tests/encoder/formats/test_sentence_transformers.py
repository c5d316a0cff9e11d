"""sentence-transformers' folders: an encoder that has no form there is refused. tests/export compares vectors."""

import pytest

from sentloom.encoder import Encoder
from sentloom.errors import ModelError
from tests.encoder.small_models import build_model_folder


def test_decoder_first_has_no_form_in_sentence_transformers(tmp_path):
    t5 = Encoder.load(build_model_folder("t5", tmp_path / "t5"), pooling="decoder-first")
    with pytest.raises(ModelError, match="no module for decoder-first pooling"):
        t5.export(tmp_path / "new", to="sentence-transformers")
    assert not (tmp_path / "new").exists()
