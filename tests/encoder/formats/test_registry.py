"""A format is a file and a line of the registry: the commands and `Encoder` then list, write, load and run it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.formats import registry
from sentloom.encoder.formats.registry import LISTED, format_of, target_names
from tests.encoder.small_models import SENTENCES

TWIN = """
from functools import partial

from sentloom.encoder.formats.format import Format, Target
from sentloom.encoder.formats.sentence_transformers import open_torch
from sentloom.encoder.loading import load_folder
from sentloom.encoder.saving import write_model, write_settings
from sentloom.encoder.pretrained import staged


def write(encoder, folder):
    (folder / "twin").mkdir()
    write_model(encoder, folder / "twin")
    encoder.backbone.model.config.save_pretrained(folder)
    write_settings(encoder, folder)


def open_twin(stage, settings):
    with staged(stage.origin / "twin") as twin:
        return open_torch(twin, settings)


FORMAT = Format(
    holds=lambda folder: (folder / "twin").is_dir(),
    load=partial(load_folder, open_twin),
    targets={"twin": Target(write)},
    package="numpy",
    reader="twinlib",
)
"""
CHILD = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from sentloom.encoder.formats.registry import LISTED, Listed

LISTED.append(Listed("twin", ("twin",), backend=True))
from sentloom.cli import main

done = {}
for name, arguments in json.loads(sys.argv[1]).items():
    sys.argv, said = ["sentloom", *arguments], StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            done[name] = [ended.code or 0, said.getvalue(), "torch" in sys.modules]
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(SENTENCES), "utf-8")
    return path


@pytest.fixture(scope="module")
def twin(bert, texts, tmp_path_factory):
    """Commands in a process that has one more format: their exit codes, what they say, and whether torch is imported."""
    folder = tmp_path_factory.mktemp("twin")
    (folder / "twin.py").write_text(TWIN, "utf-8")
    commands = {
        "help": ["export", "--help"],
        "help on backends": ["encode", "--help"],
        "unknown": ["export", bert, "--to", "twim", "-o", "unknown"],
        "export": ["export", bert, "--to", "twin", "-o", "exported"],
        "encode": ["encode", texts, "--model", "exported", "-o", "vectors.npy"],
        "backend": ["encode", texts, "--model", bert, "--backend", "twin", "-o", "backend.npy"],
    }
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(commands, default=str)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", "SENTLOOM_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_the_command_line_lists_a_new_target_without_importing_torch(twin):
    _, done = twin
    assert (done["help"][0], done["help on backends"][0]) == (0, 0)
    assert "sentence-transformers|twin" in done["help"][1]
    assert "ctranslate2-int8|twin" in done["help on backends"][1]
    assert done["unknown"][0] == 2
    assert "static, sentence-transformers, twin.\nDid you mean twin?" in done["unknown"][1]
    assert not done["unknown"][2]


def test_a_new_target_is_written_loaded_and_run(twin, bert):
    folder, done = twin
    assert [done[name][0] for name in ("export", "encode", "backend")] == [0, 0, 0], done
    assert "mean cosine 1.000000" in done["export"][1]
    assert "library_name: twinlib" in (folder / "exported/README.md").read_text("utf-8")
    assert list(folder.glob("cache/exports/*/twin/twin/model.safetensors"))
    expected = Encoder.load(bert).encode(SENTENCES)
    for name in ("vectors.npy", "backend.npy"):
        np.testing.assert_allclose(np.load(folder / name), expected, atol=1e-5)


def test_every_file_has_the_targets_that_are_listed():
    for listed in LISTED:
        assert [*registry._format(listed).targets] == [*listed.targets]
    assert len(set(target_names())) == len(target_names())


def test_a_folder_with_weights_is_not_an_export(folder):
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"as many models on the hub have")
    assert format_of(folder).trainable
    (folder / "model.safetensors").unlink()
    assert format_of(folder).package == "onnxruntime"
    (folder / "onnx/model.onnx").unlink()
    assert format_of(folder).trainable  # so that loading says that there are no weights
