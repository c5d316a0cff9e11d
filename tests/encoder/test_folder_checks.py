"""Checks of configurations: code is refused at any depth, hints are ignored, and numbers have ranges."""

import json

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.folder_checks import checked_config, checked_generation_config, checked_tokenizer_config
from sentloom.encoder.model_files import read_weights
from sentloom.errors import ModelError
from tests.encoder.small_models import SENTENCES


def patch(path, **changes):
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads is 0. Expected a whole number from 1"),
        ({"num_attention_heads": 5}, "num_attention_heads is 5. Expected a number that divides hidden_size, 32"),
        ({"hidden_size": "32"}, "hidden_size is '32'. Expected a whole number."),
        ({"layer_norm_eps": "x"}, "layer_norm_eps is 'x'. Expected a number."),
        ({"bos_token_id": "x"}, "bos_token_id is 'x'. Expected a whole number or null."),
        ({"hidden_size": 4096}, "hidden_size is 4096. Expected at most 200"),
        ({"pad_token_id": 200}, "pad_token_id is 200. Expected an id below vocab_size, 200"),
        ({"hidden_dropout_prob": 1.5}, "hidden_dropout_prob is 1.5. Expected a number from 0 to below 1"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps is 0.0. Expected a small number above 0"),
        ({"model_type": "no-such-family"}, "model_type is 'no-such-family'"),
        ({"model_type": "clip"}, "not one composed of several"),
        ({"quantization_config": {"bits": 4}}, "the weights are quantised (quantization_config)"),
        ({"text_config": [{"auto_map": {"AutoModel": "x.Y"}}]}, "the model brings its own code (auto_map)"),
        ({"_attn_implementation": "owner/repo"}, "_attn_implementation 'owner/repo' names code elsewhere"),
        ({"max_relative_positions": 10**12}, "max_relative_positions is 1000000000000. Expected at most 10,000,000"),
        (
            {"max_position_embeddings": 9_000_000, "rope_parameters": {}},
            "max_position_embeddings is 9000000. Expected at most 100,000",
        ),
        ({"unknown": {"inner": [1, 1e12]}}, "inner is 1000000000000.0. Expected at most 10,000,000"),
        ({"transformers_weights": "other.safetensors"}, "the weights are in another file (transformers_weights)"),
    ],
)
def test_the_error_about_a_configuration_names_the_file_and_the_value(folder, changes, message):
    patch(folder / "config.json", **changes)
    with pytest.raises(ModelError) as refused:
        Encoder.load(folder)
    assert str(folder / "config.json") in str(refused.value)
    assert message in str(refused.value)
    assert str(refused.value).count("\n") == 1  # the problem, and how to fix it


def test_hints_and_empty_keys_are_ignored(folder, model_folders):
    hints = {"attn_implementation": "flash_attention_2", "_attn_implementation": None, "quantization_config": None}
    patch(folder / "config.json", **hints, torch_dtype="float16", return_dict=False, auto_map={})
    expected = Encoder.load(model_folders["bert"]).encode(SENTENCES)
    assert np.array_equal(Encoder.load(folder).encode(SENTENCES), expected)


def test_labels_are_not_given_to_transformers(folder, model_folders):
    labels = {
        "num_labels": 20_000_000,
        "id2label": {"a": 1},
        "label2id": 7,
        "problem_type": "none",
        "rope_theta": 10**9,
    }
    patch(folder / "config.json", **labels, task_specific_params=3, finetuning_task=[1])
    content, config = checked_config(folder, read_weights(folder))
    assert set(labels) & set(content) == {"rope_theta"}
    assert len(config.id2label) == 2
    assert Encoder.load(folder).dimension == 32


def test_names_of_files_in_a_tokenizer_configuration_are_ignored(folder):
    patch(folder / "tokenizer_config.json", vocab_file="/etc/passwd", fast_tokenizer_files=["x"], init_inputs=["y"])
    kept = checked_tokenizer_config(folder)
    assert not {"vocab_file", "fast_tokenizer_files", "init_inputs"} & set(kept)
    assert kept["cls_token"] == "[CLS]"


def test_generation_settings_have_known_names_and_types(folder):
    patch(folder / "generation_config.json", num_beams=4, bad_words_ids=[[5]], cache_implementation="x", eos_token_id=1)
    assert checked_generation_config(folder) == {"num_beams": 4, "bad_words_ids": [[5]], "eos_token_id": 1}
    for wrong in ({"num_beams": "4"}, {"num_beams": True}, {"bad_words_ids": [["a"]]}):
        (folder / "generation_config.json").unlink()
        patch(folder / "generation_config.json", **wrong)
        with pytest.raises(ModelError, match=r"generation_config\.json"):
            checked_generation_config(folder)


def test_a_model_with_its_own_code_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(ModelError, match="brings its own code"):
        Encoder.load(folder)


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_damaged_config_is_named(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        Encoder.load(folder)
