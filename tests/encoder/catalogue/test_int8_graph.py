"""Weights from an 8-bit graph: every value by hand, and the folder of a model against what its parts should be."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from sentloom.encoder.catalogue.int8_graph import read_int8_graph  # noqa: E402


def save(path, tensors, nodes):
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "graph", inputs, [], stored)), path)
    return path


def test_tables_products_and_plain_weights(tmp_path):
    """(q - zero) * scale, by hand; a product is stored as (in, out) = (2, 3), and read as (3, 2)."""
    tensors = {
        "embeddings.word_embeddings.weight_quantized": np.array([[10, 12], [8, 10]], np.uint8),
        "embeddings.word_embeddings.weight_zero_point": np.uint8(10),
        "embeddings.word_embeddings.weight_scale": np.float32(0.5),
        "onnx::MatMul_7_quantized": np.array([[1, 2, 3], [-1, -2, -3]], np.int8),
        "onnx::MatMul_7_zero_point": np.array([0, 0, 1], np.int8),
        "onnx::MatMul_7_scale": np.array([1.0, 0.25, 2.0], np.float32),
        "classifier.weight_quantized": np.array([[4], [6]], np.int8),
        "classifier.weight_zero_point": np.int8(2),
        "classifier.weight_scale": np.float32(0.5),
        "encoder.layer.0.output.dense.bias": np.array([7.0], np.float32),
        "position": np.array([3], np.int64),  # no weight
    }
    product = helper.make_node(
        "MatMulInteger",
        ["q", "onnx::MatMul_7_quantized", "z", "onnx::MatMul_7_zero_point"],
        ["y"],
        name="/encoder/layer.0/output/dense/MatMul_quant",
    )
    between = helper.make_node("MatMulInteger", ["q", "k"], ["a"], name="/encoder/layer.0/attention/self/MatMul_quant")
    weights = read_int8_graph(save(tmp_path / "model.onnx", tensors, [product, between]))
    assert {name: value.tolist() for name, value in weights.items()} == {
        "embeddings.word_embeddings.weight": [[0.0, 1.0], [-1.0, 0.0]],
        "encoder.layer.0.output.dense.weight": [[1.0, -1.0], [0.5, -0.5], [4.0, -8.0]],
        "classifier.weight": [[1.0, 2.0]],
        "encoder.layer.0.output.dense.bias": [7.0],
    }
    assert {value.dtype for value in weights.values()} == {np.dtype(np.float32)}
