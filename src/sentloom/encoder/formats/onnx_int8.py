"""8-bit weights in an ONNX file.

onnxruntime's plain dynamic scheme is not close enough to float32 (docs/export.md has the table), so weights are rounded
in blocks of 32 with a scale each, and activations per token and block while the model runs. A vector is then the same
in every batch.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentloom.encoder.formats.onnx_probe import trust_own
from sentloom.errors import MissingPart

BLOCK = 32  # weights with one scale
AS_INT8 = 4  # onnxruntime's accuracy level at which products are of 8-bit integers


def write_int8(path: Path) -> None:
    """Replace a float32 file by one with 8-bit weights."""
    try:
        import onnx

        with _own_logging():
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError:
        problem = "the packages onnx and onnxruntime are not installed"
        raise MissingPart("export to onnx-int8", problem, "", "pip install 'sentloom[onnx]'") from None
    quantizer: Any = MatMulNBitsQuantizer(
        onnx.load(path), bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=AS_INT8
    )
    quantizer.process()
    onnx.save(quantizer.model.model, path)
    trust_own(path.read_bytes())


@contextmanager
def _own_logging() -> Iterator[None]:
    """Undo what importing onnxruntime's module does to the root logger."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
