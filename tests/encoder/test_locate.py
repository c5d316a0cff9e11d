"""How models are located, and what is refused: pickles, code, damage, other weights under a known name."""

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.locate import locate
from sentloom.errors import InputError, ModelError
from tests.encoder.small_models import SENTENCES


def test_unknown_names_are_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="owner/name@revision"):
        locate("no such model at all")
    for name, fix in (("nofolder", "Check the path of the folder."), ("nope/nope", "Check the name; if you are")):
        with pytest.raises(ModelError, match=f"it is not among the models downloaded.*\n{fix}") as caught:
            locate(name)
        assert "HF_HUB_OFFLINE" not in str(caught.value)
    with pytest.raises(ModelError, match=r"no config\.json"):
        locate(tmp_path)


def test_the_embedded_encoder_ranks_sentences_by_meaning():
    encoder = Encoder.load("embedded")
    assert (encoder.dimension, encoder.tokens.max_length, str(encoder.pooling)) == (384, 256, "mean")
    query, near, far = encoder.encode(["How do I reset my password?", "I forgot my login", SENTENCES[1]])
    assert query @ near > query @ far + 0.2


def test_only_names_on_the_hub_have_revisions(tmp_path):
    for name in ("embedded", tmp_path):
        with pytest.raises(InputError, match="is not a name on the hub, and has no revisions"):
            locate(name, "main")
