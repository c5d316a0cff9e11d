"""The same recipe run twice on one machine gives the same files; the table over five seeds prints mean and spread."""

import hashlib
import json
import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.conftest import Tally

FAULT = "15. the same recipe twice, and five seeds"
ASKED = 5

SEEDS = [1, 2, 3, 4, 5]
COMMON = {"batch": 4, "steps": 4, "learning_rate": 1e-3, "log_every": 2}
RECIPES = {
    "two stages": [
        {"method": "simcse", "data": "texts.txt", **COMMON},
        {"method": "bootstrapped", "data": "pairs.tsv", "predictor_width": 2, **COMMON},
    ],
    "a queue": [{"method": "cross-lingual", "data": "parallel.tsv", "queue": 8, **COMMON}],
}


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """A small base and data files; no sentence that is scored is trained on."""
    folder = tmp_path_factory.mktemp("work")
    build_model_folder("bert", folder / "base")
    texts = [f"{sentence} {number}" for number in range(3) for sentence in SENTENCES]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
    for name, header in (("pairs.tsv", "anchor\tpositive"), ("parallel.tsv", "source\ttarget")):
        (folder / name).write_text("\n".join([header, *(f"{text}\t{text[::-1]}" for text in texts)]) + "\n", "utf-8")
    scored = [f"a {one}\tb {two}\t{number}" for number, (one, two) in enumerate(pairwise(SENTENCES))]
    (folder / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", "utf-8")
    return folder


def run(recipe: Path, out: Path) -> str:
    """In a process with a cache of its own, so that nothing is taken over from the other run."""
    cache = out.with_name(f"{out.name}-cache")
    environment = {**os.environ, "SENTLOOM_CACHE": str(cache), "COLUMNS": "500", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sentloom", "lab", "train", recipe.name, "-o", str(out)]
    done = subprocess.run(command, cwd=recipe.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def without_times(values):
    """Results as they are but for how long something took, and for hashes over that."""
    if isinstance(values, dict):
        return {name: without_times(value) for name, value in values.items() if name not in ("seconds", "checksum")}
    return [without_times(value) for value in values] if isinstance(values, list) else values


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPES)
def test_the_same_recipe_twice(name, work, tmp_path, tally: Tally):
    recipe = work / "recipe.yaml"
    values = {"base": "base", "stages": RECIPES[name], "seeds": SEEDS, "pooling": "mean", "max_length": 32}
    recipe.write_text(yaml.safe_dump({**values, "evaluate": {"sets": ["scored.tsv"]}}))
    one, two = tmp_path / "one", tmp_path / "two"
    said = run(recipe, one)
    run(recipe, two)
    models = [hashes(one / f"models/seed-{seed}") for seed in SEEDS]
    for seed, found in zip(SEEDS, models, strict=True):
        with tally.case(f"seed {seed}"):
            assert "model.safetensors" in found
            assert found == hashes(two / f"models/seed-{seed}")
    results, again = (json.loads((folder / "results.json").read_text("utf-8")) for folder in (one, two))
    with tally.case("results"):
        assert without_times(results) == without_times(again)
    with tally.case("seeds differ"):
        assert len({found["model.safetensors"] for found in models}) == len(SEEDS)
    with tally.case("mean and spread"):
        (scored,) = results["runs"][0]["after"]
        scores = [result["after"][scored] for result in results["runs"]]
        assert len(set(scores)) > 1
        mean = sum(scores) / 5
        spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / 4)
        cell = f"{mean:.2f} ± {spread:.2f} ({mean - results['runs'][0]['before'][scored]:+.2f})"
        assert cell in (one / "results.md").read_text("utf-8")
        assert cell in said
