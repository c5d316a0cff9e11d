"""Models made for writing: the same vectors as sentence-transformers', trained, saved and exported like any other."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import AutoConfig, AutoModel

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.backbone import is_causal
from sentloom.encoder.lora import add_lora, without_lora
from sentloom.encoder.packing import pack, plan
from sentloom.encoder.saving import patch_json
from sentloom.errors import InputError, ModelError
from tests.encoder.small_models import CAUSAL_FAMILIES, SENTENCES, build_model_folder

pytestmark = pytest.mark.usefixtures("one_thread")
LONG = " ".join(SENTENCES * 6)
TEXTS = [*SENTENCES, LONG, f"{SENTENCES[1]} {SENTENCES[4]}"]
PROMPTS = {"query": "Instruct: Find what answers the question\nQuery: ", "document": ""}
FRAMES = {  # what the tokenizer adds: nothing, as Qwen2's; an end-of-text token, as Qwen3-Embedding's; both, as Llama's
    "bare": [],
    "end": [("after", "</s>")],
    "both": [("before", "<s>"), ("after", "</s>")],
}


@pytest.fixture(params=list(CAUSAL_FAMILIES))
def family(request):
    return request.param


def framed(folder, place, frame):
    """A copy of a folder whose tokenizer adds other tokens."""
    shutil.copytree(folder, place)
    ids = {name: json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"][name] for _, name in frame}
    specials = {name: {"id": name, "ids": [at], "tokens": [name]} for name, at in ids.items()}
    token = {name: {"SpecialToken": {"id": name, "type_id": 0}} for name in ids}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    before = [token[name] for side, name in frame if side == "before"]
    after = [token[name] for side, name in frame if side == "after"]
    single = [*before, text, *after]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    post = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials}
    patch_json(place / "tokenizer.json", post_processor=post if frame else None)
    return place


def st_folder(plain, place, *, side="right", unit=True, max_length=60):
    """A folder that sentence-transformers wrote around a plain one."""
    patch_json(plain / "tokenizer_config.json", padding_side=side)
    transformer = Transformer(str(plain), max_seq_length=max_length)
    modules = [transformer, Pooling(transformer.get_embedding_dimension(), "lasttoken"), *([Normalize()] * unit)]
    SentenceTransformer(modules=modules, prompts=PROMPTS, device="cpu").save(str(place))
    return place


@torch.no_grad()
def test_states_of_every_layer_equal_transformers_own(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="last")
    ids = encoder.tokenize(TEXTS)
    assert max(map(len, ids)) > 128  # longer than Gemma's window of 16
    rows = plan(np.array([len(sentence) for sentence in ids]), 10_000)[0]
    ours = encoder.backbone.states(pack(ids, rows), range(4))
    model = AutoModel.from_pretrained(model_folders[family]).eval()
    start = 0
    for row in rows:
        stop = start + len(ids[row])
        theirs = model(input_ids=torch.tensor([ids[row]]), output_hidden_states=True).hidden_states
        for layer in range(4):
            torch.testing.assert_close(ours[layer][start:stop], theirs[layer][0], atol=2e-6, rtol=1e-5)
        start = stop


@pytest.mark.parametrize("frame", list(FRAMES))
@pytest.mark.parametrize("side", ["left", "right"])
def test_folders_of_sentence_transformers_give_its_vectors(family, side, frame, model_folders, tmp_path):
    plain = framed(model_folders[family], tmp_path / "plain", FRAMES[frame])
    theirs = SentenceTransformer(str(st_folder(plain, tmp_path / "st", side=side)), device="cpu")
    assert theirs.tokenizer.padding_side == side
    ours = Encoder.load(tmp_path / "st")
    assert (str(ours.pooling), ours.tokens.max_length) == ("last", 60)  # the longest text is truncated
    assert ours.prompts["query"] == Prompt(PROMPTS["query"])
    for role, method in (("symmetric", "encode"), ("query", "encode_query"), ("document", "encode_document")):
        expected = getattr(theirs, method)(TEXTS)
        np.testing.assert_allclose(ours.encode(TEXTS, role=role), expected, atol=1e-5)


def test_the_end_of_text_token_is_pooled_also_after_truncation(model_folders, tmp_path):
    plain = framed(model_folders["qwen3"], tmp_path / "plain", FRAMES["end"])
    encoder = Encoder.load(plain, pooling="last", max_length=12)
    ids = encoder.tokenize(TEXTS)
    assert {sentence[-1] for sentence in ids} == {encoder.tokens.tokenizer.convert_tokens_to_ids("</s>")}
    assert max(map(len, ids)) == 12


@pytest.mark.parametrize(
    "written", [{"pooling_mode": "lasttoken"}, {"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}]
)
def test_new_and_old_files_of_the_pooling_are_read(written, model_folders, tmp_path):
    folder = st_folder(shutil.copytree(model_folders["qwen3"], tmp_path / "plain"), tmp_path / "st")
    width = {"word_embedding_dimension": 32, "include_prompt": True}
    (folder / "1_Pooling/config.json").write_text(json.dumps(width | written))
    assert str(Encoder.load(folder).pooling) == "last"


def test_saved_folders_give_the_same_vectors_with_sentence_transformers(family, model_folders, tmp_path):
    prompts = {"symmetric": Prompt('This sentence : "', '" means in one word:"')}
    encoder = Encoder.load(model_folders[family], pooling="last", prompts=prompts, max_length=60)
    encoder.save(tmp_path / "model")
    ours = encoder.encode(TEXTS)
    assert np.array_equal(Encoder.load(tmp_path / "model").encode(TEXTS), ours)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_a_tokenizer_without_padding_is_saved_with_some(model_folders, tmp_path):
    plain = shutil.copytree(model_folders["llama"], tmp_path / "plain")
    (plain / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "TokenizersBackend", "eos_token": "</s>"})
    )
    encoder = Encoder.load(plain, pooling="last")
    encoder.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, encoder.encode(TEXTS), atol=1e-5)


def test_adapters_learn_and_are_saved_as_weights(family, model_folders, tmp_path):
    pytest.importorskip("peft")
    encoder = Encoder.load(model_folders[family], pooling="last").train()
    before = encoder.encode(SENTENCES)
    add_lora(encoder, rank=2, alpha=4)
    learning = {name: p for name, p in encoder.named_parameters() if p.requires_grad}
    assert all("lora_" in name for name in learning)
    optimizer = torch.optim.AdamW(learning.values(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(encoder.tokenize(SENTENCES), raw=True).square().sum().backward()
        optimizer.step()
    trained = without_lora(encoder.eval())
    assert np.abs(trained.encode(SENTENCES) - before).max() > 1e-3
    trained.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(theirs, trained.encode(SENTENCES), atol=1e-5)


def test_a_causal_model_without_a_known_pooling_is_refused(family, model_folders):
    with pytest.raises(ModelError, match=r"(?s)sees only those before it.*pooling='last'"):
        Encoder.load(model_folders[family])
    with pytest.raises(InputError, match="the first token does not see the others"):
        Encoder.load(model_folders[family], pooling="cls")
    assert str(Encoder.load(model_folders[family], pooling="mean").pooling) == "mean"  # asked for


@pytest.mark.parametrize(
    ("family", "change"), [("llama", {"is_causal": False}), ("gemma3_text", {"use_bidirectional_attention": True})]
)
@torch.no_grad()
def test_models_that_read_both_ways_need_no_pooling(family, change, model_folders, tmp_path):
    folder = shutil.copytree(model_folders[family], tmp_path / "model")
    patch_json(folder / "config.json", **change)
    encoder = Encoder.load(folder)
    ids = encoder.tokenize([LONG])
    theirs = AutoModel.from_pretrained(folder).eval()(input_ids=torch.tensor(ids)).last_hidden_state
    torch.testing.assert_close(encoder.backbone.states(pack(ids, np.array([0])))[0], theirs[0], atol=2e-6, rtol=1e-5)
    assert str(encoder.pooling) == "mean"


@pytest.mark.parametrize(
    ("family", "causal"),
    [("gpt2", True), ("mistral", True), ("bert", False), ("t5", False), ("xlnet", False), ("modernbert", False)],
)
def test_which_families_are_causal(family, causal):
    assert is_causal(AutoConfig.for_model(family)) is causal


def test_families_that_run_padded_are_masked_too(tmp_path, monkeypatch):
    small = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}
    monkeypatch.setitem(CAUSAL_FAMILIES, "gpt2", ("bytes", "TokenizersBackend", small))
    encoder = Encoder.load(build_model_folder("gpt2", tmp_path / "gpt2"), pooling="last")
    assert not encoder.backbone.packed
    encoder.tokens.max_length = 40
    encoder.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, encoder.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=() if name == "qwen3" else pytest.mark.long) for name in CAUSAL_FAMILIES],
    indirect=True,
)
def test_an_onnx_export_gives_the_same_vectors(family, model_folders, tmp_path):
    pytest.importorskip("onnxscript")
    encoder = Encoder.load(model_folders[family], pooling="last", max_length=40)
    encoder.export(tmp_path / "onnx")  # refused if a golden vector differs
    exported = Encoder.load(tmp_path / "onnx")
    assert str(exported.pooling) == "last"
    np.testing.assert_allclose(exported.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)
