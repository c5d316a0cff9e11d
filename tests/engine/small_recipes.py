"""Recipes over a small base and small data: as many as one likes, beside each other."""

from itertools import pairwise
from pathlib import Path

import yaml

from tests.encoder.small_models import SENTENCES

COMMON = {"data": "texts.txt", "batch": 4, "steps": 4, "learning_rate": 1e-3, "log_every": 2}


class Kitchen:
    """A folder with texts, two sets to score on whose sentences are not trained on, and recipes."""

    def __init__(self, folder: Path, base: Path) -> None:
        self.folder, self.base = folder, base
        texts = [f"{sentence} {number}" for number in range(3) for sentence in SENTENCES]
        (folder / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
        scored = [f"a {a}\tb {b}\t{i}" for i, (a, b) in enumerate(pairwise(SENTENCES))]
        (folder / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", "utf-8")
        asked = [f"where {text}\tthere {text[:20]}" for text in SENTENCES]
        (folder / "faq.tsv").write_text("\n".join(["question\tanswer", *asked]) + "\n", "utf-8")

    def recipe(self, name: str, *stages: dict, **keys: object) -> Path:
        named = [{**COMMON, **stage} for stage in stages]
        values = {"base": str(self.base), "stages": named, "pooling": "first", "max_length": 32}
        values |= {"evaluate": {"sets": ["scored.tsv"]}, **keys}
        path = self.folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        given = {name: value for name, value in values.items() if value is not None}
        path.write_text(yaml.safe_dump(given, sort_keys=False))
        return path

    def set(self, name: str) -> str:
        """A set as tables call it: by its whole path."""
        return str(self.folder / name)
