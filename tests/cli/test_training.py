"""The command init-model; train is tested in tests/engine, vocabulary in test_data."""

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("embedded_encoder")


def test_init_model_makes_a_model_that_encodes(sentloom, faq, tmp_path):
    done = sentloom(
        "lab",
        "init-model",
        faq,
        "-o",
        tmp_path / "tiny",
        "--family",
        "t5",
        "--vocabulary",
        "60",
        "--layers",
        "1",
        "--width",
        "32",
    )
    assert done.returncode == 0, done.stderr
    done = sentloom(
        "encode",
        faq,
        "-o",
        tmp_path / "v.npy",
        "--column",
        "anchor",
        "--model",
        tmp_path / "tiny",
        "--pooling",
        "decoder-first",
    )
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "v.npy").shape == (3, 32)
    assert sentloom("lab", "init-model", faq, "-o", tmp_path / "other", "--family", "gpt").returncode == 2
