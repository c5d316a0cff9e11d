"""`sentloom export`: what is written and said, and a refusal in a sentence."""

from random import Random

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.golden import read_golden
from tests.encoder.small_models import SENTENCES, build_model_folder


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


def test_a_smaller_model_is_written_with_its_loss_of_score(sentloom, bert, tmp_path):
    texts = tmp_path / "texts.txt"
    words = " ".join(SENTENCES).split()
    texts.write_text("\n".join(" ".join(Random(n).sample(words, 6)) for n in range(420)) + "\n", "utf-8")
    done = sentloom("shrink", bert, texts, "-o", tmp_path / "small", "--layers", "1", "--steps", "1")
    assert done.returncode == 0, done.stderr
    assert "agreement with the teacher, spearman: 100.00 before" in done.stdout
    assert "(95% interval" in done.stdout
    assert Encoder.load(tmp_path / "small").backbone.num_layers == 1
    refused = sentloom("shrink", bert, texts, "-o", tmp_path / "other", "--layers", "3")
    assert refused.returncode == 2
    assert "3 of 3 are asked for" in refused.stderr
    assert not (tmp_path / "other").exists()
