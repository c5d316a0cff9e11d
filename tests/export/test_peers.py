"""Other tools read an ONNX folder and give the same vectors.

They need other versions of our dependencies: SENTLOOM_PEERS names the Python of an environment that has them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.saving import patch_json
from tests.encoder.small_models import SENTENCES

TEXTS = [*SENTENCES, " ".join(SENTENCES)]  # the last one is longer than the limit
pytestmark = pytest.mark.long
PYTHON = os.environ.get("SENTLOOM_PEERS", sys.executable)
SENTENCE_TRANSFORMERS = """
import json, sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], backend="onnx", device="cpu", model_kwargs={"provider": "CPUExecutionProvider"})
print(json.dumps(model.encode(json.loads(sys.argv[2])).tolist()))
"""
FASTEMBED = """
import json, sys
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
TextEmbedding.add_custom_model(
    model="ours", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="ours/ours"), dim=32,
    model_file="onnx/model.onnx",
)
model = TextEmbedding("ours", specific_model_path=sys.argv[1])
print(json.dumps([row.tolist() for row in model.embed(json.loads(sys.argv[2]))]))
"""

OPTIMUM = """
import json, sys
from optimum.onnxruntime import ORTModelForFeatureExtraction
from transformers import AutoTokenizer
model = ORTModelForFeatureExtraction.from_pretrained(sys.argv[1], subfolder="onnx", file_name="model.onnx")
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
texts = tokenizer(json.loads(sys.argv[2]), padding=True, truncation=True, return_tensors="pt")
mask = texts["attention_mask"][..., None]
print(json.dumps(((model(**texts).last_hidden_state * mask).sum(1) / mask.sum(1)).tolist()))
"""


def vectors_of(script, package, folder):
    environment = {**os.environ, "PYTHONPATH": ""}
    if subprocess.run(
        [PYTHON, "-c", f"import {package}"], capture_output=True, env=environment, check=False
    ).returncode:
        pytest.skip(f"{package} is not installed: set SENTLOOM_PEERS to a Python that has it")
    call = [PYTHON, "-c", script, str(folder), json.dumps(TEXTS)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return np.array(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("kind", ["bert", "t5"])
def test_sentence_transformers_runs_the_folder(kind, tmp_path):
    from tests.encoder.small_models import build_model_folder

    pooling = "decoder-first" if kind == "t5" else "mean@1,-1"
    encoder = Encoder.load(build_model_folder(kind, tmp_path / kind), pooling=pooling)
    folder = encoder.export(tmp_path / "new").folder
    vectors = vectors_of(SENTENCE_TRANSFORMERS, "optimum.onnxruntime", folder)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=5e-5)


def test_optimum_runs_the_folder(bert, tmp_path):
    encoder = Encoder.load(bert)
    encoder.unit_length = False
    folder = encoder.export(tmp_path / "new").folder
    np.testing.assert_allclose(vectors_of(OPTIMUM, "optimum.onnxruntime", folder), encoder.encode(TEXTS), atol=5e-5)


def test_fastembed_runs_the_folder_as_a_custom_model(bert, tmp_path):
    base = Path(shutil.copytree(bert, tmp_path / "base"))
    patch_json(base / "tokenizer_config.json", max_length=12)  # as in the base of the embedded encoder
    encoder = Encoder.load(base)
    encoder.unit_length = True
    folder = encoder.export(tmp_path / "new").folder
    assert len(encoder.tokens.bare(TEXTS[-1:])[0]) > encoder.tokens.max_length > 12
    np.testing.assert_allclose(vectors_of(FASTEMBED, "fastembed", folder), encoder.encode(TEXTS), atol=5e-5)
