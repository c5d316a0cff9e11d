"""kill -9 of `sentloom lab train`, anywhere: the same command again ends with the same files.

Hidden files that a kill left half-written are not compared: small ones may stay.
"""

import json
import sys
from pathlib import Path

import pytest
import torch
import yaml

from sentloom.cli import main
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.conftest import Tally
from tests.training.killing import complete, kill_until_done

FAULT = "kill -9 of `train`"

KILLS, WRITES = 15, 8
STAGE = {"method": "simcse", "data": "texts.txt", "batch": 4, "steps": 6, "log_every": 2, "snapshots": 3}


@pytest.fixture
def recipe(tmp_path, monkeypatch) -> Path:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    build_model_folder("bert", tmp_path / "base")
    texts = [f"{sentence} {number}" for number in range(3) for sentence in SENTENCES]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
    scored = [f"a {text}\tb {text}\t{number}" for number, text in enumerate(SENTENCES)]
    (tmp_path / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", "utf-8")
    values = {"base": "base", "stages": [{**STAGE, "checkpoint_seconds": 0.0}], "seeds": [1, 2], "pooling": "mean"}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({**values, "evaluate": {"sets": ["scored.tsv"]}}))
    return path


def train(recipe: Path, folder: Path) -> None:
    sys.argv = ["sentloom", "lab", "train", str(recipe), "-o", str(folder / "out")]
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


def half_written(folder: Path) -> set[Path]:
    return {path for path in folder.rglob(".*") if not path.name.endswith(".lock")}


def files(folder: Path) -> dict[str, object]:
    """All files by name, with the bytes of weights and the values of results; what is hidden is left out."""
    found: dict[str, object] = {}
    for path in (folder / "out").rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            found[str(name)] = path.read_bytes() if path.suffix == ".safetensors" else None
    results = json.loads((folder / "out/results.json").read_text("utf-8"))
    return {**found, "scores": [run["after"] for run in results["runs"]]}


@pytest.mark.long
def test_a_killed_train_ends_with_the_same_files(recipe, tmp_path, tally: Tally):
    whole = tmp_path / "whole"
    whole.mkdir()
    seconds = complete(lambda: train(recipe, whole), whole)
    tally.tried += KILLS
    runs = kill_until_done(
        lambda folder: train(recipe, folder), tmp_path / "killed", seconds, half_written, KILLS, inside=WRITES
    )
    expected = files(whole)
    for run in runs:
        found = files(run)
        assert sorted(found) == sorted(expected)
        assert [name for name in expected if found[name] != expected[name]] == []
