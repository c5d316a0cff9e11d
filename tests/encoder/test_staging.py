"""A staged folder contains checked files only."""

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from sentloom.encoder import Encoder
from sentloom.encoder.pretrained import staged
from sentloom.errors import ModelError
from tests.encoder.small_models import SENTENCES


def test_sharded_weights_load_like_a_single_file(model_folders, tmp_path):
    folder = shutil.copytree(model_folders["bert"], tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(sorted(weights))}
    for part in set(names.values()):
        held = {name: weights[name] for name in names if names[name] == part}
        save_file(held, folder / part, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    expected = Encoder.load(model_folders["bert"]).encode(SENTENCES)
    assert np.array_equal(Encoder.load(folder).encode(SENTENCES), expected)


def test_only_known_files_are_staged_and_the_folder_is_temporary(folder):
    for name in ("chat_template.jinja", "adapter_model.safetensors", "modeling_evil.py", "pytorch_model.bin"):
        (folder / name).write_text("x")
    with staged(folder) as stage:
        names = {path.name for path in stage.folder.iterdir()}
        assert names == {"config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors"}
        assert (stage.folder / "model.safetensors").resolve() == (folder / "model.safetensors").resolve()
        assert stage.origin == folder
    assert not stage.folder.exists()


def test_a_vocabulary_that_is_no_json_is_refused(folder):
    (folder / "tokenizer.json").write_text("[1]")
    with pytest.raises(ModelError, match=r"tokenizer\.json: the JSON value is a list"), staged(folder):
        pytest.fail("it was staged")
