"""Static encoders: the mean of the tokens' vectors, computed by hand; damaged folders are refused.

A folder that is written through model2vec is read by model2vec, sentence-transformers and us, with equal vectors.
"""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from sentloom.encoder import Encoder
from sentloom.encoder.golden import read_golden
from sentloom.encoder.heads import Projection
from sentloom.encoder.tokens import Prompt
from sentloom.errors import ModelError
from tests.encoder.small_models import SENTENCES, build_model_folder

with_model2vec = pytest.mark.skipif(
    find_spec("model2vec") is None or find_spec("skeletoken") is None,
    reason="model2vec is not installed: pip install 'sentloom[static]'",
)
TABLE = np.array([[0, 0], [3, 4], [1, 0]], np.float32)  # [UNK], dog, cat


@pytest.fixture
def folder(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "dog": 1, "cat": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    save_file({"embeddings": TABLE}, tmp_path / "model.safetensors")
    return tmp_path


def test_the_mean_by_hand(folder):
    encoder = Encoder.load(folder)
    vectors = encoder.encode(["dog", "dog cat", "cat bird", "", "bird"])
    mean = np.array([2, 2]) / np.sqrt(8)
    expected = [[0.6, 0.8], mean, [1, 0], [0, 0], [0, 0]]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert encoder.dimension == 2


def test_its_fingerprint_depends_on_the_vectors(folder):
    before = Encoder.load(folder).fingerprint()
    assert Encoder.load(folder).fingerprint() == before
    save_file({"embeddings": TABLE + 1}, folder / "model.safetensors")
    assert Encoder.load(folder).fingerprint() != before


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"embeddings": TABLE, "mapping": TABLE}, "not those of a plain static model"),
        ({"embeddings": TABLE[:2]}, "ids without a vector"),
    ],
)
def test_other_tensors_are_refused(folder, tensors, problem):
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError, match=problem):
        Encoder.load(folder)


def test_it_cannot_be_trained(folder):
    with pytest.raises(ModelError, match="cannot be trained or saved"):
        Encoder.load(folder).train()


@pytest.fixture(scope="module")
def static(bert, tmp_path_factory):
    encoder = Encoder.load(bert)
    encoder.unit_length = True
    return encoder.export(tmp_path_factory.mktemp("static") / "model", to="static", accept_loss=100)


@with_model2vec
def test_every_reader_gives_the_same_vectors(static):
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer

    texts = [*SENTENCES, "unknown: 漢字 " + SENTENCES[0]]
    ours = Encoder.load(static.folder).encode(texts)
    assert np.linalg.norm(ours, axis=1) == pytest.approx(1)
    np.testing.assert_allclose(StaticModel.from_pretrained(static.folder).encode(texts), ours, atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(static.folder), device="cpu").encode(texts), ours, atol=1e-5)


@with_model2vec
def test_its_cost_is_measured_and_its_golden_vectors_are_its_own(static):
    golden = read_golden(static.folder)
    assert static.agreement is None
    assert static.score.on == ("general triplets",)
    assert golden.holds(golden.check(Encoder.load(static.folder)))


@with_model2vec
def test_no_path_of_this_machine_is_written(static, bert):
    assert json.loads((static.folder / "config.json").read_text())["tokenizer_name"] == bert.name
    written = "".join(path.read_text() for path in static.folder.iterdir() if path.suffix in (".json", ".md"))
    assert str(bert.parent) not in written
    assert ".part-" not in written


@pytest.mark.parametrize(("pooling", "problem"), [("decoder-first", "distil the decoder"), ("max", "the pooling max")])
def test_what_it_cannot_carry(pooling, problem, tmp_path):
    encoder = Encoder.load(build_model_folder("t5", tmp_path / "t5"), pooling=pooling)
    with pytest.raises(ModelError, match=problem):
        encoder.export(tmp_path / "new", to="static")


def test_a_projection_is_refused(bert, tmp_path):
    plain = Encoder.load(bert)
    encoder = Encoder(plain.backbone, plain.tokens, pooling=plain.pooling, heads=[Projection(32, 8)])
    with pytest.raises(ModelError, match="has a projection"):
        encoder.export(tmp_path / "new", to="static")


def test_prompts_are_refused(bert, tmp_path):
    encoder = Encoder.load(bert)
    encoder.prompts = {"query": Prompt("query: ")}
    with pytest.raises(ModelError, match="knows no prompts"):
        encoder.export(tmp_path / "new", to="static")
    assert not (tmp_path / "new").exists()


@with_model2vec
def test_vectors_have_unit_length_only_if_the_models_have(bert, tmp_path):
    encoder = Encoder.load(bert)
    encoder.unit_length = False
    done = encoder.export(tmp_path / "new", to="static", accept_loss=100)
    assert not Encoder.load(done.folder).unit_length
    assert np.linalg.norm(Encoder.load(done.folder).encode(SENTENCES), axis=1) != pytest.approx(1)
