"""Weights must be complete: missing or extra weights are refused, except those of known heads."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from sentloom.encoder import Encoder
from sentloom.errors import ModelError
from tests.encoder.small_models import SENTENCES

HEADS = [
    ("bert", "BertForPreTraining"),
    ("bert", "BertForSequenceClassification"),
    ("bert", "BertForQuestionAnswering"),
    ("roberta", "RobertaForMaskedLM"),
    ("roberta", "RobertaForSequenceClassification"),
    ("distilbert", "DistilBertForMaskedLM"),
    ("distilbert", "DistilBertForSequenceClassification"),
    ("mpnet", "MPNetForMaskedLM"),
    ("electra", "ElectraForPreTraining"),
    ("electra", "ElectraForMaskedLM"),
    ("albert", "AlbertForPreTraining"),
    ("xlm-roberta", "XLMRobertaForTokenClassification"),
    ("modernbert", "ModernBertForMaskedLM"),
    ("modernbert", "ModernBertForSequenceClassification"),
    ("t5", "T5ForConditionalGeneration"),
    ("t5", "T5EncoderModel"),
    ("mt5", "MT5ForConditionalGeneration"),
]


def patch(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(("family", "kind"), HEADS)
def test_checkpoints_with_a_known_head_load_without_it(family, kind, model_folders, tmp_path):
    folder = shutil.copytree(model_folders[family], tmp_path / "model")
    headed = getattr(transformers, kind).from_pretrained(folder, use_safetensors=True)
    headed.save_pretrained(folder)
    expected = Encoder.load(model_folders[family]).encode(SENTENCES)
    assert np.allclose(Encoder.load(folder).encode(SENTENCES), expected, atol=1e-6)


def test_fewer_layers_than_the_weights_have_are_refused(folder):
    patch(folder / "config.json", num_hidden_layers=2)
    with pytest.raises(ModelError, match=r"has no weights named encoder\.layer\.2.* \(16 unused\)"):
        Encoder.load(folder)


def test_more_layers_than_the_weights_have_are_refused_before_allocation(folder):
    patch(folder / "config.json", num_hidden_layers=1_000_000)
    with pytest.raises(ModelError, match=r"config\.json: num_hidden_layers is 1000000"):
        Encoder.load(folder)
    patch(folder / "config.json", num_hidden_layers=4)
    with pytest.raises(ModelError, match="at most 3, the number of layers in the weights"):
        Encoder.load(folder)


@pytest.mark.parametrize("name", ["adapter.up", "cls.backdoor.weight", "head.other.weight"])
def test_unknown_weights_are_refused(folder, name):
    change_weights(folder, lambda weights: weights.update({name: torch.zeros(3)}))
    with pytest.raises(ModelError, match=rf"{re.escape(name)} \(1 unused\)"):
        Encoder.load(folder)


def test_the_error_about_a_wrong_shape_names_both_shapes(folder):
    patch(folder / "config.json", type_vocab_size=3)
    with pytest.raises(
        ModelError, match=r"token_type_embeddings\.weight has the shape 2 x 32. Expected 3 x 32, as in config"
    ):
        Encoder.load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_weights_are_refused(folder, value):
    change_weights(folder, lambda weights: weights["encoder.layer.1.output.dense.bias"].fill_(value))
    with pytest.raises(ModelError, match=r"model\.safetensors: encoder\.layer\.1.* has NaN or infinite values"):
        Encoder.load(folder)


def test_non_finite_vectors_are_refused_and_nothing_is_written(folder, sentloom, tmp_path):
    change_weights(folder, lambda weights: weights["encoder.layer.2.output.LayerNorm.weight"].fill_(3e38))
    (tmp_path / "texts.txt").write_text("A man is playing.\n")
    ended = sentloom("encode", tmp_path / "texts.txt", "--model", folder, "-o", tmp_path / "out.npy")
    assert ended.returncode == 2
    assert "the vector of 'A man is playing.' (text 1)" in " ".join(ended.stderr.split())
    assert {path.name for path in tmp_path.iterdir()} - {"scratch"} == {"model", "texts.txt"}
    with pytest.raises(ModelError, match=r"the vector of 'Yes' \(text 1\) has NaN or infinite values"):
        Encoder.load(folder).encode(["Yes", "No"])


def test_a_tokenizer_with_ids_beyond_the_embeddings_is_refused(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["zebra"] = 777
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match=r"ids up to 777. Expected ids below 200"):
        Encoder.load(folder)


def test_a_post_processor_with_an_id_beyond_the_embeddings_is_refused(folder):
    patch(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")  # other classes rebuild it
    frame = json.loads((folder / "tokenizer.json").read_text())["post_processor"]
    frame["special_tokens"]["[CLS]"]["ids"] = [9999]
    patch(folder / "tokenizer.json", post_processor=frame)
    with pytest.raises(ModelError, match=r"tokenizer\.json: the post_processor adds the id 9999 .* below 200"):
        Encoder.load(folder)


def test_a_tokenizer_without_words_is_refused(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"nothing that a BertTokenizer reads")
    with pytest.raises(ModelError, match="special tokens and no words"):
        Encoder.load(folder)


def test_a_folder_without_a_tokenizer_is_refused(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        Encoder.load(folder)


def test_missing_weights_are_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.attention.self.query.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"there are no weights for encoder\.layer\.1"):
        Encoder.load(folder)
