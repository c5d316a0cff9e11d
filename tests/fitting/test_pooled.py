"""`--pooling`: bases that state none, such as models made for writing."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from sentloom import fit
from sentloom.encoder import Encoder
from sentloom.errors import InputError, ModelError
from sentloom.fitting.bases import base_languages, find_resources, load_bases
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.fitting import small_base
from tests.fitting.test_request import request


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    folder = build_model_folder("qwen3", tmp_path_factory.mktemp("causal") / "qwen3")
    (folder / "README.md").write_text("---\nlanguage: [de]\n---\n", "utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def stated(tmp_path_factory):
    return str(small_base.build_base(tmp_path_factory.mktemp("stated")))


def test_a_causal_base_is_refused_with_the_option_that_decides(qwen):
    with pytest.raises(ModelError, match=r"(?s)sees only those before it.*pooling='last'"):
        load_bases(request(base=(qwen,)))


def test_the_pooling_is_that_of_bases_that_state_none(qwen, stated, tmp_path):
    asked = request(base=(qwen, stated), pooling="lasttoken", output=tmp_path / "model")
    causal, other = load_bases(asked)
    assert (str(causal.encoder.pooling), str(other.encoder.pooling)) == ("last", "mean")
    assert (causal.label, other.name) == ("qwen3", stated)
    assert find_resources(asked, causal).pooling == "last"
    assert base_languages(causal) == ("de",)
    expected = Encoder.load(qwen, pooling="last").encode(SENTENCES)
    assert np.array_equal(causal.encoder.encode(SENTENCES), expected)
    assert np.array_equal(Encoder.load(causal.path).encode(SENTENCES), expected)
    written = (tmp_path / "model.fit/bases").iterdir()
    assert [str(folder) for folder in written] == [causal.path]
    assert load_bases(asked)[0].path == causal.path


def test_a_pooling_is_refused_if_every_base_states_another(stated, tmp_path):
    with pytest.raises(InputError, match=r"states mean pooling, and last is asked for"):
        load_bases(request(base=(stated,), pooling="last", output=tmp_path / "model"))
    (base,) = load_bases(request(base=(stated,), pooling="mean", output=tmp_path / "model"))
    assert base.name == stated
    with pytest.raises(InputError, match="not a pooling"):
        load_bases(request(base=(stated,), pooling="average", output=tmp_path / "model"))


def test_a_fit_from_a_causal_base(qwen, tmp_path):
    pairs = [(sentence, small_base.other(sentence)) for sentence in small_base.sentences(60, 1)]
    done = fit(pairs, tmp_path / "model", base=qwen, pooling="last", budget="2steps", force=True)
    assert f"--base {qwen} --pooling last" in done.result.command
    encoder = done.encoder
    assert str(encoder.pooling) == "last"
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(theirs, encoder.encode(SENTENCES), atol=1e-5)
