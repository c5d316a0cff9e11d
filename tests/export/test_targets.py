"""The targets: what each requires, and how an ONNX folder describes an encoder."""

import pytest

from sentloom.encoder import Encoder, Prompt
from sentloom.errors import ModelError
from sentloom.export.targets import TARGETS, readable_tokenizer_config, with_plain_pooling


def test_what_is_required_of_each():
    required = {name: target.required for name, target in TARGETS.items()}
    assert required == {
        "onnx": 0.99999,
        "onnx-int8": 0.99,
        "ctranslate2": 0.99999,
        "ctranslate2-int8": 0.99,
        "static": None,
        "sentence-transformers": 0.99999,
    }
    assert [name for name, target in TARGETS.items() if target.lossy] == ["onnx-int8", "ctranslate2-int8", "static"]


def test_layers_become_a_plain_pooling_and_the_encoder_keeps_its_own(bert):
    encoder = Encoder.load(bert, pooling="max@0,-1")
    plain = with_plain_pooling(encoder)
    assert (str(plain.pooling), str(encoder.pooling)) == ("max", "max@0,-1")
    assert plain.backbone is encoder.backbone


def test_suffixes_that_differ_by_role_are_refused(bert, tmp_path):
    encoder = Encoder.load(bert, prompts={"query": Prompt("", " ?"), "document": Prompt("", " .")})
    with pytest.raises(ModelError, match="a tokenizer can add only one"):
        encoder.export(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_peers_on_an_older_version_of_transformers_can_read_the_tokenizers_configuration(bert):
    written = {"extra_special_tokens": ["<a>"], "tokenizer_class": "TokenizersBackend", "model_max_length": 10**30}
    assert readable_tokenizer_config(Encoder.load(bert, max_length=24), written) == {
        "additional_special_tokens": ["<a>"],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 24,
    }
    plain = readable_tokenizer_config(
        Encoder.load(bert), {"extra_special_tokens": [], "tokenizer_class": "T5Tokenizer"}
    )
    assert plain == {"tokenizer_class": "T5Tokenizer", "model_max_length": 64}
