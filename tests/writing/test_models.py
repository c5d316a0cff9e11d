"""The model of a name: text-to-text or causal."""

import pytest

from sentloom.errors import ModelError
from sentloom.writing.causal import Causal
from sentloom.writing.models import open_model
from sentloom.writing.text_to_text import TextToText
from tests.encoder.small_models import build_model_folder
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import SHORT, build_small_t5


def test_the_family_follows_the_configuration(tmp_path):
    assert type(open_model(build_small_t5(tmp_path / "t5"))) is TextToText
    model = open_model(build_small_causal(tmp_path / "llama"), wording=SHORT, source_length=9)
    assert type(model) is Causal
    assert (model.learned, model.source_length, model.target_length) == (SHORT, 9, 64)


def test_an_encoder_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"this is a bert model\. Expected a text-to-text model.* or a causal model"):
        open_model(build_model_folder("bert", tmp_path / "bert"))
