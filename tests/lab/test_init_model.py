"""Built models load with every pooling, save, and have the words of the texts in their vocabulary."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.lab.init_model import FAMILIES, Size, build_model
from tests.encoder.small_models import SENTENCES

TEXTS = SENTENCES * 10


@pytest.mark.parametrize("family", FAMILIES)
def test_a_built_model_loads_encodes_and_saves(family, tmp_path):
    build_model(tmp_path / "new", family, TEXTS, size=Size(vocabulary=150, layers=2, width=32, max_length=20))
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


def test_weights_depend_on_the_seed(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build_model(tmp_path / name, "bert", TEXTS, seed=seed, size=Size(vocabulary=100, layers=1, width=32))
    first, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == same
    assert first != other


def test_invalid_sizes_and_families_are_refused(tmp_path):
    for family, size in (("gpt", Size()), ("bert", Size(width=33)), ("t5", Size(layers=0))):
        with pytest.raises(InputError):
            build_model(tmp_path / "x", family, TEXTS, size)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        build_model(tmp_path / "full", "bert", TEXTS)
