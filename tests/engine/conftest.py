"""A small base, small data, and recipes over them."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
import yaml
from accelerate import Accelerator

from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.lab.recipe import read_recipe
from tests.encoder.small_models import SENTENCES, build_model_folder

COMMON = {"batch": 4, "steps": 4, "learning_rate": 1e-3, "log_every": 2}


@pytest.fixture(autouse=True)
def quiet_room(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setenv("COLUMNS", "500")


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def work(tmp_path: Path, bert: Path) -> Path:
    """Data files: sentences, pairs, and two sets to score on, no sentence of which is trained on."""
    texts = [f"{sentence} {number}" for number in range(3) for sentence in SENTENCES]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
    pairs = [f"{text}\t{text[::-1]}" for text in texts]
    (tmp_path / "pairs.tsv").write_text("\n".join(["anchor\tpositive", *pairs]) + "\n", "utf-8")
    scored = [f"a {a}\tb {b}\t{i}" for i, (a, b) in enumerate(pairwise(SENTENCES))]
    (tmp_path / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", "utf-8")
    asked = [f"where {text}\tthere {text[:20]}" for text in SENTENCES]
    (tmp_path / "faq.tsv").write_text("\n".join(["question\tanswer", *asked]) + "\n", "utf-8")
    return tmp_path


class Kitchen:
    """Writes recipes beside the data, and runs them in the folder `out`."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder, self.base, self.told = folder, base, []

    def recipe(self, *stages: dict, **keys: object) -> Path:
        named = [{"data": "texts.txt", **COMMON, **stage} for stage in stages]
        values = {"base": str(self.base), "stages": named, "pooling": "first", "max_length": 32}
        values |= {"evaluate": {"sets": ["scored.tsv"]}, **keys}
        path = self.folder / "recipe.yaml"
        path.write_text(yaml.safe_dump({name: value for name, value in values.items() if value is not None}))
        return path

    def plan(self, *stages: dict, **keys: object) -> Plan:
        return read_recipe(self.recipe(*stages, **keys)).resolve()

    def run(self, *stages: dict, out: str = "out", **keys: object):
        plan = self.plan(*stages, **keys)
        (runner,) = prepare([plan], self.folder / out, Accelerator(cpu=True), self.told.append)
        return runner.run()

    def stages(self, out: str = "out") -> dict[str, int]:
        """The stages that were made, and when."""
        places = (self.folder / out / "stages").glob("*/result.json")
        return {path.parent.name: path.stat().st_mtime_ns for path in places}


@pytest.fixture
def kitchen(work: Path, bert: Path) -> Kitchen:
    return Kitchen(work, bert)
