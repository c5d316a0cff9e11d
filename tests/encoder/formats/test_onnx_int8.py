"""8-bit weights: the file is smaller, and a vector is the same in every batch."""

import logging

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.formats.onnx import ONNX
from sentloom.encoder.formats.registry import target_named
from sentloom.lab.init_model import Size, build_model
from tests.encoder.small_models import SENTENCES


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Wide enough that products dominate."""
    folder = tmp_path_factory.mktemp("wide") / "bert"
    build_model(folder, "bert", SENTENCES * 20, size=Size(vocabulary=200, layers=2, width=128, max_length=32))
    return Encoder.load(folder)


@pytest.mark.long
def test_vectors_are_close_and_do_not_depend_on_the_batch(wide, tmp_path):
    level, handlers = logging.root.level, list(logging.root.handlers)
    target_named("onnx-int8").write(wide, tmp_path)
    assert (logging.root.level, logging.root.handlers) == (level, handlers)
    loaded = Encoder.load(tmp_path)
    vectors, expected = loaded.encode(SENTENCES), wide.encode(SENTENCES)
    cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.999
    assert cosines.max() < 1 - 1e-9  # they are rounded
    alone = np.stack([loaded.encode(text) for text in SENTENCES])
    np.testing.assert_allclose(alone, vectors, atol=1e-5)
    sizes = {name: weight.numel() for name, weight in wide.backbone.named_parameters()}
    rounded = sum(size for name, size in sizes.items() if "encoder.layer" in name)
    assert (tmp_path / ONNX).stat().st_size < 4 * sum(sizes.values()) - 2 * rounded
