"""Models that make views: truncation, the hash of their files, and the precision of inference."""

import pytest
import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM

from sentloom.encoder.device import running_on
from sentloom.encoder.loading import load_for_inference, load_model
from sentloom.errors import ModelError


def test_ids_are_cut_before_the_final_token(folder):
    model = load_model(str(folder), AutoModel, "an encoder")
    assert model.longest == 62  # of 64 positions, two are reserved
    assert model.cut([1, 2, 3]) == ([1, 2, 3], [])
    assert model.cut(list(range(65))) == ([*range(61), 64], [61, 62, 63])


def test_the_hash_depends_on_the_files_that_change_the_output(folder):
    first = load_model(str(folder), AutoModel, "an encoder").sha256
    (folder / "README.md").write_text("notes")
    assert load_model(str(folder), AutoModel, "an encoder").sha256 == first
    (folder / "vocab.txt").write_text("[PAD]\n")
    assert load_model(str(folder), AutoModel, "an encoder").sha256 != first


def test_bf16_is_part_of_the_hash(folder):
    exact = load_for_inference(str(folder), AutoModel, "an encoder")
    with running_on("cpu", "bf16"):
        rounded = load_for_inference(str(folder), AutoModel, "an encoder")
    assert (exact.model.dtype, rounded.model.dtype) == (torch.float32, torch.bfloat16)
    assert rounded.sha256 == f"{exact.sha256} bf16"


def test_a_model_of_another_kind_is_refused(folder):
    with pytest.raises(ModelError, match=r"this is a bert model\. Expected a text-to-text model"):
        load_model(str(folder), AutoModelForSeq2SeqLM, "a text-to-text model")
