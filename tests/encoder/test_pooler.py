"""The pooler of BERT and RoBERTa, where SimCSE keeps its MLP: linear and tanh after the first token."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from sentloom.encoder import Encoder
from sentloom.errors import InputError, ModelError
from sentloom.methods.frozen_source import set_pooling
from tests.encoder.small_models import SENTENCES


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_vectors_are_the_pooler_output_of_transformers_and_those_of_the_saved_folder(
    family, model_folders, tmp_path
):
    folder = model_folders[family]
    encoder = Encoder.load(folder, pooling="pooler")
    vectors = encoder.encode(SENTENCES)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        inputs = [tokenizer(text, return_tensors="pt") for text in SENTENCES]
        wanted = torch.cat([model(input_ids=one["input_ids"]).pooler_output for one in inputs]).numpy()
    assert np.allclose(vectors, wanted, atol=1e-5)
    encoder.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(SENTENCES)
    assert np.allclose(theirs, wanted, atol=1e-5)
    again = Encoder.load(
        tmp_path / "model", pooling="pooler"
    )  # the head that was saved is the pooler: not a second one
    assert (len(again.heads), str(again.pooling)) == (1, "first")
    assert np.allclose(again.encode(SENTENCES), wanted, atol=1e-5)


def test_a_model_without_a_pooler_and_an_encoder_that_is_loaded_already_are_refused(model_folders):
    with pytest.raises(ModelError, match="no pooler"):
        Encoder.load(model_folders["t5"], pooling="pooler")
    with pytest.raises(InputError, match="read from a model's weights"):
        set_pooling(Encoder.load(model_folders["bert"]), "pooler")
