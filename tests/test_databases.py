"""The page about databases, run against the databases themselves: each finds what `sentloom search` finds."""

import re
from itertools import permutations
from pathlib import Path

import pytest

from sentloom import Encoder
from tests.encoder.small_models import SENTENCES, build_model_folder

PAGE = (Path(__file__).parents[1] / "docs" / "databases.md").read_text("utf-8")
START, *BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
NEEDED = ("duckdb", "faiss", "lancedb", "qdrant_client", "langchain_core", "llama_index.core")
HEAVY = pytest.mark.long  # large packages, of the extra bench


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    """A folder with a model and a file of questions with ids."""
    folder = tmp_path_factory.mktemp("databases")
    encoder = Encoder.load(build_model_folder("bert", folder / "plain"), pooling="mean")
    encoder.save(folder / "model", golden=False)
    plain = [sentence for sentence in SENTENCES if sentence.strip() and '"' not in sentence]
    rows = [f'q{number},"{first[:40]} {second[:40]}"' for number, (first, second) in enumerate(permutations(plain, 2))]
    (folder / "faq.csv").write_text("\n".join(["id,text", *rows]) + "\n", "utf-8")
    return folder


def test_every_part_of_the_page_is_run():
    assert len(BLOCKS) == len(NEEDED)
    assert all(f"import {name}" in block or f"from {name}" in block for name, block in zip(NEEDED, BLOCKS, strict=True))
    assert all("\nids = " in block for block in BLOCKS)


@pytest.mark.parametrize(
    ("module", "block"),
    [
        pytest.param(name, block, id=name, marks=() if name == "faiss" else HEAVY)
        for name, block in zip(NEEDED, BLOCKS, strict=True)
    ],
)
def test_a_database_finds_the_same_neighbours(module, block, kitchen, sentloom, monkeypatch):
    pytest.importorskip(module)
    monkeypatch.chdir(kitchen)
    done = sentloom("encode", "faq.csv", "-o", "vectors.parquet", "--role", "document", "--model", "model")
    assert done.returncode == 0, done.stderr
    values = {}
    exec(START, values)
    exec(block, values)
    table = values["table"]
    hits = values["encoder"].search("Where is the canteen?", table["text"].to_pylist(), k=5)
    assert len(hits) == 5
    assert values["ids"] == [table["id"][hit.row].as_py() for hit in hits]
