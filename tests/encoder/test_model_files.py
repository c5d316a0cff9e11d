"""Files of a model folder: nothing outside it, bounded JSON, weights only as safetensors."""

import json
import os
import pickle
import re
from pathlib import Path

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.model_files import DEEPEST_JSON, inside, read_json
from sentloom.errors import ModelError


class Bomb:
    """A pickle that creates a file if it is ever read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


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


def test_a_giant_declared_shape_is_refused(folder):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    with pytest.raises(ModelError, match="does not load"):
        Encoder.load(folder)


@pytest.fixture
def whole_folder(model_folders, tmp_path):
    base = Encoder.load(model_folders["bert"])
    Encoder(base.backbone, base.tokens, pooling=base.pooling, heads=[Projection(32, 8)]).save(tmp_path / "whole")
    return tmp_path / "whole"


def broken_link(path):
    path.symlink_to("nothing")


@pytest.mark.parametrize(
    "name",
    [
        *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "sentloom.json"),
        *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "config.json", "1_Pooling/config.json"),
        *("model.safetensors", "2_Dense/config.json", "2_Dense/model.safetensors"),
    ],
)
def test_folders_pipes_and_broken_links_are_refused(whole_folder, name):
    path = whole_folder / name
    for put, words in (
        (Path.mkdir, "it is a folder"),
        (os.mkfifo, "it is a pipe"),
        (broken_link, "it is a broken link"),
    ):
        path.unlink(missing_ok=True)
        put(path)
        with pytest.raises(ModelError, match=f"{re.escape(str(path))}: {words}"):
            Encoder.load(whole_folder)
        (path.rmdir if path.is_dir() else path.unlink)()


def test_json_depth_and_size_are_limited(tmp_path):
    path = tmp_path / "x.json"
    for depth, sound in ((DEEPEST_JSON, True), (DEEPEST_JSON + 1, False), (50_000, False)):
        path.write_text('{"a":' * depth + "1" + "}" * depth)
        if sound:
            assert "a" in read_json(path)
            continue
        with pytest.raises(ModelError, match=r"x\.json"):
            read_json(path)
    path.write_text(json.dumps({"a": "b" * 100}))
    with pytest.raises(ModelError, match="at most 50 are read"):
        read_json(path, largest=50)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "linked", "a\0b"])
def test_names_that_lead_out_of_a_folder_are_refused(tmp_path, name):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "x").write_text("")
    (folder / "linked").symlink_to(tmp_path / "x")
    with pytest.raises(ModelError, match=str(folder)):
        inside(folder, name)
    assert inside(folder, "a/../config.json") == folder / "a/../config.json"
