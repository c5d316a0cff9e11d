"""Templates: the mask token's state as a vector, in sentloom and in plain sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.packing import PackedRun
from sentloom.encoder.pooling import pool_at
from sentloom.encoder.templates import template_bias
from sentloom.errors import InputError, ModelError
from sentloom.methods.frozen_source import set_pooling
from tests.encoder.small_models import SENTENCES

pytestmark = pytest.mark.usefixtures("one_thread")
MASKS = {"bert": "[MASK]", "roberta": "<mask>"}
LONG = " ".join(SENTENCES * 3)
TEXTS = [*SENTENCES, LONG, ""]


def template(family):
    return {"symmetric": Prompt('This sentence : "', f'" means {MASKS[family]} .')}


def test_hand_computed_means_of_chosen_tokens():
    states = torch.tensor([[1.0, 8.0], [3.0, 2.0], [0.0, 0.0], [4.0, -6.0], [7.0, 7.0]])
    chosen = torch.tensor([False, True, True, True, True])
    runs = (PackedRun(0, 2, 2), PackedRun(4, 1, 1))
    assert pool_at(states, chosen, runs).tolist() == [[3, 2], [2, -3], [7, 7]]


@pytest.mark.parametrize("family", MASKS)
@torch.no_grad()
def test_the_vector_is_the_state_at_the_mask_token(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="mask", prompts=template(family))
    model = AutoModel.from_pretrained(model_folders[family]).eval()
    vectors = encoder.encode(SENTENCES)
    for vector, ids in zip(vectors, encoder.tokenize(SENTENCES), strict=True):
        at = [place for place, token in enumerate(ids) if token == encoder.tokens.mask]
        (state,) = model(input_ids=torch.tensor([ids])).last_hidden_state[0, at].numpy()
        np.testing.assert_allclose(vector, state, atol=1e-5)


@pytest.mark.parametrize("family", MASKS)
def test_plain_sentence_transformers_gives_the_vectors_of_a_saved_folder(family, model_folders, tmp_path):
    encoder = Encoder.load(model_folders[family], pooling="mask", prompts=template(family))
    assert max(map(len, encoder.tokens.bare(TEXTS))) > encoder.tokens.max_length  # the template survives truncation
    encoder.save(tmp_path / "model")
    ours = encoder.encode(TEXTS)
    again = Encoder.load(tmp_path / "model")
    assert (str(again.pooling), again.prompts) == ("mask", encoder.prompts)
    assert np.array_equal(again.encode(TEXTS), ours)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), ours, atol=1e-5)


def test_a_mask_token_in_the_text_is_averaged_with_the_templates(model_folders, tmp_path):
    encoder = Encoder.load(model_folders["bert"], pooling="mask", prompts=template("bert"))
    text = "No one [MASK] ; it rains."
    assert encoder.tokenize([text])[0].count(encoder.tokens.mask) == 2
    encoder.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(theirs.encode([text]), encoder.encode([text]), atol=1e-5)


@pytest.mark.parametrize("family", MASKS)
def test_without_a_prompt_the_papers_manual_template_is_taken(family, model_folders):
    assert Encoder.load(model_folders[family], pooling="mask").prompts == template(family)


def test_an_onnx_export_gives_the_same_vectors(model_folders, tmp_path):
    pytest.importorskip("onnxscript")
    encoder = Encoder.load(model_folders["bert"], pooling="mask")
    encoder.export(tmp_path / "onnx")  # refused if a golden vector differs
    exported = Encoder.load(tmp_path / "onnx")
    assert str(exported.pooling) == "first"
    np.testing.assert_allclose(exported.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


def test_prompts_and_tokenizers_without_a_mask_token_are_refused(model_folders):
    bert = model_folders["bert"]
    with pytest.raises(InputError, match=r"has no \[MASK\]. Expected a template"):
        Encoder.load(bert, pooling="mask", prompts={"query": template("bert")["symmetric"]})
    with pytest.raises(InputError, match="has no mask token"):
        Encoder.load(model_folders["t5"], pooling="mask")
    with pytest.raises(InputError, match=r"prompt '{}' has no \[MASK\]"):
        set_pooling(Encoder.load(bert), "mask")
    with pytest.raises(InputError, match="not a pooling"):
        Encoder.load(bert, pooling="mask@1")


def test_word_weights_of_others_are_refused(model_folders, tmp_path):
    Encoder.load(model_folders["bert"], pooling="mask").save(tmp_path / "model")
    (tmp_path / "model/sentloom.json").unlink()
    with pytest.raises(ModelError, match="the pooling is None"):
        Encoder.load(tmp_path / "model")


@pytest.mark.parametrize("family", MASKS)
@torch.no_grad()
def test_the_bias_is_the_state_of_the_template_alone_at_the_positions_around_a_sentence(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="mask", prompts=template(family))
    prompt = encoder.prompts["symmetric"]
    alone = encoder.tokens([""], prompt)[0]
    before = len(encoder.tokens.specials.before) + len(encoder.tokens.bare([prompt.prefix])[0])
    lengths = [len(alone) + gap for gap in (7, 0, 3, 7)]
    model = AutoModel.from_pretrained(model_folders[family]).eval()
    first = encoder.backbone.first_position
    for bias, length in zip(template_bias(encoder, prompt, lengths), lengths, strict=True):
        gap = length - len(alone)
        places = [first + place + (gap if place >= before else 0) for place in range(len(alone))]
        states = model(input_ids=torch.tensor([alone]), position_ids=torch.tensor([places])).last_hidden_state[0]
        torch.testing.assert_close(bias, states[alone.index(encoder.tokens.mask)], atol=1e-5, rtol=1e-5)
