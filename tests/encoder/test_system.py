"""What a model folder says about its search: written, read, exported, refused."""

import json

import pytest

from sentloom import Encoder
from sentloom.encoder.saving import write_system
from sentloom.encoder.system import VECTORS_ALONE, Fusion, Reranking, System, read_system
from sentloom.errors import ModelError

SYSTEM = System(Fusion(0.3, "english", 2.5, (1.0, 4.0)), Reranking("reranker", 0.5, 30))


def test_a_saved_model_keeps_its_system_and_one_without_it_has_vectors_alone(model_folders, tmp_path):
    encoder = Encoder.load(model_folders["bert"])
    encoder.save(tmp_path / "plain", golden=False)
    assert Encoder.load(tmp_path / "plain").system == VECTORS_ALONE
    encoder.system = SYSTEM
    encoder.save(tmp_path / "fused", golden=False)
    assert Encoder.load(tmp_path / "fused").system == SYSTEM
    write_system(VECTORS_ALONE, tmp_path / "fused")
    assert read_system(tmp_path / "fused") == VECTORS_ALONE
    assert Encoder.load(tmp_path / "fused").pooling == encoder.pooling


def test_a_system_in_words():
    assert str(VECTORS_ALONE) == "vectors"
    assert str(System(Fusion(0.3))) == "vectors and words (weight 0.3)"
    assert str(SYSTEM) == (
        "vectors, words (weight 0.3, english stems) and the re-ranker reranker (weight 0.5, the first 30)"
    )


@pytest.mark.parametrize("bad", [3, {"fusion": {"weight": 2}}, {"fusion": {"weight": "0.5"}}, {"fusion": {"size": 1}}])
def test_a_system_that_cannot_be_read_is_refused(bad, tmp_path):
    (tmp_path / "sentloom.json").write_text(json.dumps({"system": bad}))
    with pytest.raises(ModelError, match="a weight between 0 and 1"):
        read_system(tmp_path)
