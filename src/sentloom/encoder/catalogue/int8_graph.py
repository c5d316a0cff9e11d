"""Weights of a BERT from an ONNX graph that ONNX Runtime's dynamic quantisation made: 8-bit integers, a scale, a zero.

A weight is `(q - zero) * scale`. Tables stay tables: the graph gathers 8-bit rows and dequantises these. Products are
stored transposed, (in, out) with a scale per output, under names such as `onnx::MatMul_1525`: which layer one belongs
to is said by the name of the node that multiplies by it. Everything else is float32 under its own name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import MissingPart

Weights = dict[str, npt.NDArray[np.float32]]
QUANTISED, ZERO, SCALE = "_quantized", "_zero_point", "_scale"
PRODUCT = "/MatMul_quant"  # the end of the name of a layer's node: /encoder/layer.0/output/dense/MatMul_quant
LINEAR = ("pooler.dense.weight", "classifier.weight")  # products that kept their names, also transposed


def require_onnx(what: str) -> None:
    """Refuse to read a graph without the package that does."""
    from importlib.util import find_spec

    if find_spec("onnx") is None:
        problem = "the package onnx, which reads the file that its weights come from, is not installed"
        raise MissingPart(what, problem, "", "pip install 'sentloom[onnx]'")


def read_int8_graph(path: Path) -> Weights:
    """All weights, under the names that transformers gives them."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights: Weights = {}
    for name, value in stored.items():
        if value.dtype == np.float32 and value.ndim and not name.endswith(SCALE):
            weights[name] = value
        elif name.endswith(f".weight{QUANTISED}"):
            base = name.removesuffix(QUANTISED)
            weights[base] = _transposed(_dequantised(stored, base), base.endswith(LINEAR))
    weights |= {layer: _transposed(_dequantised(stored, base), True) for layer, base in _products(graph.node)}
    return weights


def _products(nodes: Any) -> Iterator[tuple[str, str]]:
    """The weights of the layers, and the names that they are stored under."""
    for node in nodes:
        if node.op_type == "MatMulInteger" and node.input[1].startswith("onnx::"):
            layer = node.name.removesuffix(PRODUCT).removeprefix("/").replace("/", ".")
            yield f"{layer}.weight", node.input[1].removesuffix(QUANTISED)


def _dequantised(stored: dict[str, Any], base: str) -> npt.NDArray[np.float32]:
    """The scale and the zero are numbers, or one of each per output."""
    zero, scale = stored[base + ZERO].astype(np.int32), stored[base + SCALE]
    whole: npt.NDArray[np.float32] = (stored[base + QUANTISED].astype(np.int32) - zero).astype(np.float32)
    return whole * scale


def _transposed(weight: npt.NDArray[np.float32], needed: bool) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(weight.T) if needed else weight
