"""`sentloom export`: what is written and said, and a refusal in a sentence."""

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.golden import read_golden
from tests.encoder.small_models import build_model_folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


def test_a_target_is_written_and_proven(sentloom, bert, tmp_path):
    done = sentloom("export", bert, "--to", "ctranslate2", "-o", tmp_path / "fast")
    assert done.returncode == 0, done.stderr
    assert "mean cosine 1.0000" in done.stdout or "mean cosine 0.99999" in done.stdout
    assert f"written: {tmp_path / 'fast'}" in done.stdout
    assert Encoder.load(tmp_path / "fast").dimension == 32
    assert len(read_golden(tmp_path / "fast").texts) > 100


def test_a_refusal_exits_with_2_and_writes_nothing(sentloom, tmp_path):
    mpnet = build_model_folder("mpnet", tmp_path / "mpnet")
    done = sentloom("export", mpnet, "--to", "ctranslate2", "-o", tmp_path / "fast")
    assert done.returncode == 2
    assert "CTranslate2 has no encoder for mpnet models" in done.stderr
    assert "Export to onnx." in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("scratch")) == ["mpnet"]
