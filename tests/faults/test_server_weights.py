"""Weights that are overwritten or truncated under a running server: its vectors stay the same, and it stays up."""

from pathlib import Path

import numpy as np
import pytest

from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.commands import run
from tests.faults.conftest import Tally
from tests.faults.servers import ask, served

pytestmark = pytest.mark.long
FAULT = "weights changed under a server"
ASKED = 12

FORMS = ("torch", "onnx", "ctranslate2-int8", "static")


def damaged(content: bytes) -> dict[str, bytes]:
    """Other content for a file of weights."""
    return {
        "other weights": np.random.default_rng(0).bytes(len(content)),
        "half": content[: len(content) // 2],
        "nothing": b"",
    }


@pytest.mark.parametrize("form", FORMS)
def test_vectors_stay_the_same(tmp_path: Path, tally: Tally, form: str) -> None:
    pytest.importorskip({"onnx": "onnxruntime", "ctranslate2": "ctranslate2"}.get(form.partition("-")[0], "torch"))
    served_folder = build_model_folder("bert", tmp_path / "small")
    if form != "torch":
        lossy = ["--accept-loss", "100"] if form == "static" or form.endswith("int8") else []
        made = run(tmp_path, tmp_path / "export.log", ["export", "small", "--to", form, "-o", "exported", *lossy])
        assert made.code == 0, made.output
        served_folder = tmp_path / "exported"
    files = [path for path in served_folder.rglob("*") if path.suffix in (".safetensors", ".onnx", ".bin")]
    assert files
    with served(tmp_path, str(served_folder)) as (port, child):
        before = ask(port, "/v1/embeddings", {"input": SENTENCES}).vectors
        contents = {path: path.read_bytes() for path in files}
        for kind in damaged(b""):
            for path, content in contents.items():
                with path.open("r+b") as file:
                    file.write(damaged(content)[kind])
                    file.truncate(len(damaged(content)[kind]))
            with tally.case(f"{form}, {kind}"):
                assert ask(port, "/v1/embeddings", {"input": SENTENCES}).vectors == before
                assert ask(port, "/health").status == 200
                assert child.poll() is None
