"""ONNX folders: what is refused, and how a folder describes an encoder. tests/export compares vectors."""

from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model
from transformers import AutoConfig

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.formats.onnx import OnnxBackbone, open_onnx, readable_tokenizer_config, with_plain_pooling
from sentloom.errors import ModelError


@pytest.mark.parametrize(
    ("inputs", "outputs"), [(["input_ids", "pixels"], ["last_hidden_state"]), (["input_ids"], ["logits"])]
)
def test_a_file_with_other_inputs_or_outputs_is_refused(inputs, outputs):
    named = [[SimpleNamespace(name=name) for name in names] for names in (inputs, outputs)]
    session = SimpleNamespace(get_inputs=lambda: named[0], get_outputs=lambda: named[1])
    with pytest.raises(ModelError, match="Expected input_ids and attention_mask, and last_hidden_state"):
        OnnxBackbone(session, AutoConfig.for_model("bert"), "model/", "abc", batched=True)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx/model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"model\.onnx: the model does not load"):
        open_onnx(tmp_path, AutoConfig.for_model("bert"), batched=True)


def test_weights_in_other_files_are_refused(tmp_path):
    numbers = numpy_helper.from_array(np.ones(300, np.float32), "numbers")
    graph = helper.make_graph(
        [helper.make_node("Add", ["input_ids", "numbers"], ["last_hidden_state"])],
        "adds",
        [helper.make_tensor_value_info("input_ids", TensorProto.FLOAT, [300])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [300])],
        [numbers],
    )
    path = tmp_path / "onnx/model.onnx"
    path.parent.mkdir()
    save_model(helper.make_model(graph), path, save_as_external_data=True, location="numbers", size_threshold=0)
    assert (path.parent / "numbers").is_file()
    with pytest.raises(ModelError, match=r"model\.onnx: its weights are in other files"):
        open_onnx(tmp_path, AutoConfig.for_model("bert"), batched=True)


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
