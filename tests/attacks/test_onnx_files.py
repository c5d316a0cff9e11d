"""A hostile ONNX file in a model folder is refused in a sentence, and an honest one is tried once."""

import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

WIDTH = 32


def model(*nodes, **constants):
    """A model that adds a number, `extra`, to the ids, and repeats them as states."""
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "L"])
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "L", WIDTH])
    constants |= {"last_axis": [2], "wide": [1, 1, WIDTH]}
    chain = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT),
        *nodes,
        helper.make_node("Add", ["numbers", "extra"], ["sums"]),
        helper.make_node("Unsqueeze", ["sums", "last_axis"], ["columns"]),
        helper.make_node("Expand", ["columns", "wide"], ["last_hidden_state"]),
    ]
    tensors = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    graph = helper.make_graph(chain, "graph", [ids], [states], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def honest():
    return model(extra=np.float32(1))


def large():
    """4 GB of zeros, summed."""
    zeros = helper.make_node("ConstantOfShape", ["size"], ["zeros"])
    return model(zeros, helper.make_node("ReduceSum", ["zeros"], ["extra"], keepdims=0), size=[1 << 30])


def endless():
    """A loop whose condition stays true."""
    number, condition = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("number", TensorProto.INT64), ("condition", TensorProto.BOOL))
    )
    before, after, still = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("before", TensorProto.FLOAT), ("after", TensorProto.FLOAT), ("still", TensorProto.BOOL))
    )
    steps = [helper.make_node("Sin", ["before"], ["after"]), helper.make_node("Identity", ["condition"], ["still"])]
    body = helper.make_graph(steps, "body", [number, condition, before], [still, after])
    loop = helper.make_node("Loop", ["", "true", "start"], ["extra"], body=body)
    return model(loop, true=True, start=np.float32(1))


def field(number, content):
    """A protobuf field of bytes; its length is written with more bytes than it needs."""
    return bytes([number << 3 | 2, len(content) & 0x7F | 0x80, len(content) >> 7 | 0x80, 0]) + content


def elsewhere():
    """Weights in another file, which a search for the usual bytes of its key does not find."""
    place = field(1, b"location") + field(2, b"secret")
    tensor = b"\x08\x01\x10\x01" + field(8, b"extra") + field(13, place) + b"\x70\x01"  # one float, somewhere else
    return model() + field(7, field(5, tensor))  # protobuf joins the two graphs


@pytest.fixture
def folder(sentloom, tmp_path):
    """A model folder without weights, to put an ONNX file into."""
    (tmp_path / "texts.txt").write_text("A dog runs.\nA cat sleeps.\nRain fell on the roof.\n", "utf-8")
    small = ("--layers", 1, "--width", WIDTH, "--vocabulary", 50, "--max-length", 16)
    assert sentloom("lab", "init-model", tmp_path / "texts.txt", "-o", tmp_path / "model", *small).returncode == 0
    (tmp_path / "model/model.safetensors").unlink()
    (tmp_path / "model/onnx").mkdir()
    return tmp_path / "model"


def encode(sentloom, folder, content):
    (folder / "onnx/model.onnx").write_bytes(content)
    texts, vectors = folder.with_name("texts.txt"), folder.with_name("vectors.npy")
    return sentloom("encode", texts, "-o", vectors, "--model", folder)


def test_memory_is_limited(sentloom, folder):
    done = encode(sentloom, folder, large())
    assert done.returncode == 2
    assert "model.onnx: the model does not run on a few batches in 2.0 GiB of memory" in done.stderr
    assert not folder.with_name("vectors.npy").exists()


@pytest.mark.long
def test_time_is_limited(sentloom, folder):
    done = encode(sentloom, folder, endless())
    assert done.returncode == 2
    assert "model.onnx: the model does not run on a few batches within 60 seconds" in done.stderr


def test_an_honest_file_is_tried_once(sentloom, folder, monkeypatch):
    assert encode(sentloom, folder, honest()).returncode == 0
    assert np.load(folder.with_name("vectors.npy")).shape == (3, WIDTH)
    monkeypatch.setattr(sys, "executable", "no-such-program")  # what the other process would be
    assert encode(sentloom, folder, honest()).returncode == 0


def test_states_must_be_a_vector_for_every_token(sentloom, folder):
    done = encode(sentloom, folder, model(extra=np.ones((3, 1), np.float32)))
    assert done.returncode == 2
    assert "model.onnx: for 1 texts of 2 tokens, the states have the size 3 x 2 x 32" in done.stderr


def test_weights_in_other_files_are_refused_however_their_name_is_written(sentloom, folder):
    done = encode(sentloom, folder, elsewhere())
    assert done.returncode == 2
    assert "model.onnx: its weights are in other files" in done.stderr
