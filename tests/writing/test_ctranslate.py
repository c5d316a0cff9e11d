import json
import shutil
import sys

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from sentloom.errors import MissingPart, ModelError
from sentloom.writing import ctranslate
from sentloom.writing.causal import Causal
from sentloom.writing.ctranslate import open_ctranslate2
from sentloom.writing.judges import judge
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import TextToText, TransformersWriter, open_backend
from sentloom.writing.writer import SourceText, prompts_for
from tests.writing.asking import texts_for
from tests.writing.conftest import stir
from tests.writing.oracles import in_int8
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import TRIPLETS

pytest.importorskip("ctranslate2")
GREEDY = Sampling(greedy=True, length=10)
SMALL = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
SMALL_BART = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 512,
    "decoder_start_token_id": 1, "init_std": 0.3,
}  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


def with_model(writer_folder, folder, family, settings):
    """The tokenizer of a small T5 with a model of another family."""
    shutil.copytree(writer_folder, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    names = folder / "tokenizer_config.json"
    names.write_text(json.dumps(json.loads(names.read_text()) | {"bos_token": "<pad>"}))  # BART's have one
    size = len(TextToText.load(writer_folder).tokenizer)
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, vocab_size=size, pad_token_id=0, eos_token_id=1, **settings)
    stir(AutoModelForSeq2SeqLM.from_config(config)).save_pretrained(folder)
    return TextToText.load(folder)


def test_greedy_texts_are_those_of_transformers(writer, cache, asked):
    texts = texts_for(open_ctranslate2(writer, GREEDY, cache), asked)
    assert texts == texts_for(TransformersWriter(writer, GREEDY), asked)
    assert len(set(texts)) > 5


@pytest.mark.parametrize("limit", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
def test_limits_that_leave_one_word_are_greedy(writer, cache, asked, limit):
    narrow = open_ctranslate2(writer, Sampling(length=10, **limit), cache)
    assert texts_for(narrow, asked) == texts_for(TransformersWriter(writer, GREEDY), asked)


def test_one_text_a_request(writer, cache, asked):
    backend = open_ctranslate2(writer, Sampling(length=4), cache)
    texts = texts_for(backend, asked * 3)
    assert len(texts) == 3 * len(asked)
    assert len(set(texts)) > len(asked)
    assert texts_for(backend, []) == []


@pytest.fixture(scope="module")
def calm(calm_folder):
    return TextToText.load(calm_folder)


def test_verdicts_are_those_of_transformers(calm, cache, pairs):
    backend = open_backend("ctranslate2", calm, GREEDY, cache)
    assert backend.name == "ctranslate2"
    chances = backend.judge(pairs)
    np.testing.assert_allclose(chances, judge(calm, pairs), atol=1e-4)
    np.testing.assert_allclose(backend.judge(pairs[::-1]), chances[::-1], atol=1e-4)
    assert backend.judge([]).shape == (0,)


def test_verdicts_in_int8_are_off_by_no_more_than_8_bits_account_for(calm, cache, pairs):
    """On every CPU: with VNNI there is only the rounding, without it sums of two products are cut to 16 bits as well."""
    pairs = pairs[:12]
    backend = open_backend("ctranslate2-int8", calm, GREEDY, cache)
    assert backend.name == "ctranslate2-int8"
    expected = judge(calm, pairs)
    most = np.abs(judge(in_int8(calm), pairs) - expected).max()
    assert 0 < most < 0.15  # the bound says something: scores range over 0 to 1
    off = np.abs(backend.judge(pairs) - expected).max()
    assert 0 < off < 2 * most
    assert backend.judge([]).shape == (0,)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("mt5", SMALL | {"feed_forward_proj": "gated-gelu"}),
        ("t5", SMALL | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),  # as T5 1.1
        ("bart", SMALL_BART),
    ],
)
def test_other_families(writer_folder, tmp_path, asked, pairs, family, settings):
    model = with_model(writer_folder, tmp_path / "model", family, settings)
    backend = open_ctranslate2(model, GREEDY, tmp_path)
    np.testing.assert_allclose(backend.judge(pairs), judge(model, pairs), atol=1e-4)
    texts = texts_for(backend, asked)
    assert texts == texts_for(TransformersWriter(model, GREEDY), asked)
    assert len(set(texts)) > 5


def test_a_model_is_converted_once(writer, writer_folder, tmp_path):
    open_ctranslate2(writer, GREEDY, tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    made = (folder / "model.bin").stat().st_mtime_ns
    open_ctranslate2(writer, Sampling(), tmp_path)
    assert (folder / "model.bin").stat().st_mtime_ns == made
    other = TextToText.load(writer_folder)
    with torch.no_grad():
        other.model.get_input_embeddings().weight[5] += 1
    open_ctranslate2(other, GREEDY, tmp_path)
    open_ctranslate2(writer, GREEDY, tmp_path, "int8")
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 3


def test_a_conversion_that_judges_otherwise_is_refused(writer_folder, tmp_path, monkeypatch):
    """As happens where the converter reads of T5 1.1 that its outputs are scaled."""
    settings = SMALL | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    model = with_model(writer_folder, tmp_path / "model", "t5", settings)
    monkeypatch.setattr(ctranslate, "SCALES", ())
    with pytest.raises(ModelError, match="judges differently"):
        open_ctranslate2(model, GREEDY, tmp_path / "cache")


def test_a_damaged_conversion_is_made_again(writer, tmp_path):
    open_ctranslate2(writer, GREEDY, tmp_path)
    (file,) = tmp_path.glob("*/model.bin")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damaged)
        open_ctranslate2(writer, GREEDY, tmp_path)
        assert file.read_bytes() == whole


def test_a_model_that_cannot_be_converted_is_refused_and_leaves_nothing(writer_folder, tmp_path):
    model = with_model(writer_folder, tmp_path / "model", "longt5", SMALL)
    with pytest.raises(ModelError, match="CTranslate2 cannot convert a longt5 model"):
        open_ctranslate2(model, GREEDY, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*"))


def test_without_the_package_the_message_says_what_to_install(writer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingPart, match=r"pip install 'sentloom\[ctranslate2\]'"):
        open_ctranslate2(writer, GREEDY, tmp_path)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return Causal.load(build_small_causal(tmp_path_factory.mktemp("causal") / "model")).eval()


def test_causal_models_write_and_judge_the_same(causal, cache):
    (question, *_) = prompts_for(("query",), "English")["query"]
    sources = [SourceText(row, f"{TRIPLETS[row * 9][0]} and {TRIPLETS[row][0]}") for row in range(6)]
    backend = open_ctranslate2(causal, GREEDY, cache)
    expected = TransformersWriter(causal, GREEDY).write(sources, "query", question)
    assert backend.write(sources, "query", question) == expected
    assert len({one.text for one in expected}) > 3
    assert backend.write([], "query", question) == []
    pairs = [(anchor, one) for anchor, positive, (negative,) in TRIPLETS[::40] for one in (positive, negative)]
    np.testing.assert_allclose(backend.judge(pairs), judge(causal, pairs), atol=1e-4)


def test_samples_of_a_causal_model_differ_and_end_at_a_line(causal, cache):
    (question, *_) = prompts_for(("query",), "English")["query"]
    backend = open_ctranslate2(causal, Sampling(length=30, temperature=2.0), cache)
    answers = backend.write([SourceText(0, "a man sleeps")] * 40, "query", question)
    assert len({answer.text for answer in answers}) > 10
    assert {answer.finished for answer in answers} == {True, False}
    assert all(answer.tokens_written <= 30 for answer in answers)
