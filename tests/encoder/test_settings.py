"""Folders made or changed by others are read as sentence-transformers reads them, or refused."""

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.heads import Projection
from sentloom.errors import ModelError
from tests.encoder.small_models import SENTENCES


def patch(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def assert_same(folder, **options):
    ours = Encoder.load(folder).encode(SENTENCES)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(SENTENCES, **options)
    assert np.allclose(ours, theirs, atol=1e-5)


@pytest.fixture
def saved(model_folders, tmp_path):
    """A saved folder with prompts, two projections and unit length."""
    base = Encoder.load(model_folders["bert"])
    heads = [Projection(32, 24), Projection(24, 12, activation="tanh")]
    prompts = {"symmetric": Prompt("dogs "), "query": Prompt("man ")}
    encoder = Encoder(base.backbone, base.tokens, pooling=base.pooling, heads=heads, unit_length=True, prompts=prompts)
    encoder.eval().save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize("family", ["bert", "t5"], indirect=True)
def test_a_removed_suffix_does_not_come_back(family, model_folders, tmp_path):
    Encoder.load(model_folders[family], prompts={"symmetric": Prompt(suffix=" A man knows.")}).save(tmp_path / "with")
    without = Encoder.load(tmp_path / "with", prompts={})
    without.save(tmp_path / "without")
    expected = Encoder.load(model_folders[family]).encode(SENTENCES)
    assert np.array_equal(without.encode(SENTENCES), expected)
    assert np.array_equal(Encoder.load(tmp_path / "without").encode(SENTENCES), expected)
    assert_same(tmp_path / "without")


@pytest.mark.parametrize("family", ["roberta", "t5"], indirect=True)
def test_lower_case_is_saved(family, model_folders, tmp_path):
    Encoder.load(model_folders[family]).save(tmp_path / "model")
    patch(tmp_path / "model/sentence_bert_config.json", do_lower_case=True)
    encoder = Encoder.load(tmp_path / "model")
    assert encoder.tokenize(["TWO DOGS"]) == encoder.tokenize(["two dogs"])
    encoder.save(tmp_path / "again")
    again = Encoder.load(tmp_path / "again")
    assert np.array_equal(again.encode(SENTENCES), encoder.encode(SENTENCES))
    assert_same(tmp_path / "again")


def test_a_pooling_changed_by_others_is_used(saved):
    assert Encoder.load(saved).pooling.how == "mean"
    (saved / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 32, "pooling_mode": "max"}))
    assert Encoder.load(saved).pooling.how == "max"
    assert_same(saved)


def test_prompts_changed_by_others_are_used_and_may_be_empty(saved):
    prompts = {"symmetric": "train ", "query": "bird ", "document": ""}
    patch(saved / "config_sentence_transformers.json", prompts=prompts, default_prompt_name="symmetric")
    encoder = Encoder.load(saved)
    assert encoder.tokenize(["x"], "document") == Encoder.load(saved, prompts={}).tokenize(["x"])
    assert encoder.prompts["query"] == Prompt("bird ")
    assert_same(saved)


def test_unsupported_folders_are_refused(saved, tmp_path):
    modules = json.loads((saved / "modules.json").read_text())
    swapped = shutil.copytree(saved, tmp_path / "swapped")
    (swapped / "modules.json").write_text(json.dumps([*modules[:2], modules[4], *modules[2:4]]))
    with pytest.raises(ModelError, match="Normalize, Dense"):
        Encoder.load(swapped)
    prompted = shutil.copytree(saved, tmp_path / "prompted")
    patch(prompted / "1_Pooling/config.json", include_prompt=False)
    with pytest.raises(ModelError, match="without the prompt"):
        Encoder.load(prompted)
    elsewhere = shutil.copytree(saved, tmp_path / "elsewhere")
    patch(elsewhere / "2_Dense/config.json", module_input_name="token_embeddings")
    with pytest.raises(ModelError, match="Dense"):
        Encoder.load(elsewhere)
    broken = shutil.copytree(saved, tmp_path / "broken")
    (broken / "2_Dense/model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match="does not load"):
        Encoder.load(broken)
    garbled = shutil.copytree(saved, tmp_path / "garbled")
    (garbled / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer"):
        Encoder.load(garbled)


@pytest.mark.parametrize(
    ("file", "key", "value", "expected"),
    [
        ("1_Pooling/config.json", "pooling_mode_mean_tokens", "false", "true or false"),
        ("1_Pooling/config.json", "include_prompt", 0, "true or false"),
        ("1_Pooling/config.json", "word_embedding_dimension", "32", "a whole number, 1 or more"),
        ("config_sentence_transformers.json", "prompts", [], "an object that maps names to strings"),
        ("config_sentence_transformers.json", "default_prompt_name", "corpus", "null or one of symmetric, query"),
        ("config_sentence_transformers.json", "default_prompt_name", 3, "null or one of symmetric, query"),
        ("2_Dense/config.json", "bias", "x", "true or false"),
        ("2_Dense/config.json", "in_features", True, "a whole number, 1 or more"),
        ("2_Dense/config.json", "use_residual", "no", "false"),
        ("2_Dense/config.json", "activation_function", ["x"], "one of torch.nn"),
        ("2_Dense/config.json", "module_output_name", "token_embeddings", "sentence_embedding"),
    ],
)
def test_the_error_about_a_wrong_type_names_file_key_and_value(saved, file, key, value, expected):
    patch(saved / file, **{key: value})
    with pytest.raises(ModelError) as refused:
        Encoder.load(saved)
    assert str(refused.value).startswith(f"{saved / file}: {key} is {value!r}. Expected {expected}")


def test_the_error_about_mismatched_widths_names_both(saved):
    patch(saved / "2_Dense/config.json", in_features=99)
    with pytest.raises(
        ModelError, match=r"linear\.weight in model\.safetensors has the shape 24 x 32. Expected 24 x 99"
    ):
        Encoder.load(saved)
    patch(saved / "1_Pooling/config.json", word_embedding_dimension=99)
    with pytest.raises(ModelError, match=r"1_Pooling/config\.json: the pooling has 99 dimensions. Expected 32"):
        Encoder.load(saved)


def test_a_missing_file_is_reported(saved):
    (saved / "1_Pooling/config.json").unlink()
    with pytest.raises(ModelError, match=r"1_Pooling/config\.json: no such file"):
        Encoder.load(saved)


def test_saving_only_replaces_models(model_folders, tmp_path):
    encoder = Encoder.load(model_folders["bert"])
    (tmp_path / "home").mkdir()
    (tmp_path / "home/thesis.tex").write_text("years of work")
    with pytest.raises(ModelError, match="something other than a model"):
        encoder.save(tmp_path / "home")
    with pytest.raises(ModelError, match="it is a file"):
        encoder.save(tmp_path / "home/thesis.tex")
    assert (tmp_path / "home/thesis.tex").read_text() == "years of work"
