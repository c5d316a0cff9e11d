"""CTranslate2: what it cannot carry is refused in a sentence, and 8-bit weights are close."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.model_files import CTRANSLATE
from sentloom.errors import ModelError
from sentloom.export.targets import TARGETS
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.mark.parametrize(
    ("family", "pooling", "problem"),
    [
        ("mpnet", "mean", "no encoder for mpnet models"),
        ("t5", "decoder-first", "no encoder for t5 models"),
        ("bert", "first-last", "the last layer only, and the pooling is mean@1,-1"),
    ],
)
def test_what_it_cannot_carry(family, pooling, problem, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family), pooling=pooling)
    with pytest.raises(ModelError, match=problem):
        encoder.export(tmp_path / "new", to="ctranslate2")
    assert not (tmp_path / "new").exists()


def test_rounded_weights_are_close(bert, tmp_path):
    encoder = Encoder.load(bert)
    TARGETS["ctranslate2-int8"].write(encoder, tmp_path)
    found, expected = Encoder.load(tmp_path).encode(SENTENCES), encoder.encode(SENTENCES)
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.99
    assert (tmp_path / CTRANSLATE).is_file()


@pytest.mark.long
@pytest.mark.parametrize("family", ["distilbert", "roberta", "xlm-roberta"])
def test_every_family(family, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family))
    done = encoder.export(tmp_path / "new", to="ctranslate2")
    np.testing.assert_allclose(Encoder.load(done.folder).encode(SENTENCES), encoder.encode(SENTENCES), atol=5e-5)
