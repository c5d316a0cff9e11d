"""Models from a few numbers: they load, in every pooling, save, and know their words."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.building import FAMILIES, build_model
from sentloom.errors import InputError
from tests.encoder.small_models import SENTENCES

TEXTS = SENTENCES * 10


@pytest.mark.parametrize("family", FAMILIES)
def test_a_built_model_loads_encodes_and_saves(family, tmp_path):
    build_model(tmp_path / "new", family, TEXTS, vocabulary=150, layers=2, width=32, max_length=20)
    poolings = ("mean", "first", *(() if family == "bert" else ("decoder-first",)))
    for pooling in poolings:
        encoder = Encoder.load(tmp_path / "new", pooling=pooling)
        vectors = encoder.encode(SENTENCES)
        assert vectors.shape == (8, 32)
        assert encoder.tokens.max_length == 20
        encoder.save(tmp_path / pooling)
        np.testing.assert_allclose(Encoder.load(tmp_path / pooling).encode(SENTENCES), vectors, atol=1e-6)
    ids = encoder.tokenize([SENTENCES[0]])[0]
    assert encoder.tokens.tokenizer.unk_token_id not in ids


def test_the_same_seed_gives_the_same_weights_and_another_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build_model(tmp_path / name, "bert", TEXTS, vocabulary=100, layers=1, width=32, seed=seed)
    one, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert one == same
    assert one != other


def test_what_cannot_be_built_is_told(tmp_path):
    for settings in ({"family": "gpt"}, {"family": "bert", "width": 33}, {"family": "t5", "layers": 0}):
        with pytest.raises(InputError):
            build_model(tmp_path / "x", texts=TEXTS, **settings)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(InputError, match="something in it"):
        build_model(tmp_path / "full", "bert", TEXTS)
