"""The stages on the pages of the methods run as they are printed, here for a few steps on small data."""

import re

import pytest
import yaml

from sentloom.encoder import Encoder
from tests.encoder.small_models import SENTENCES
from tests.paths import ROOT

PAGES = ("supervised", "cosent", "angle", "contrastive", "tsdae")
FEW = {"batch": 4, "steps": 3}


def stages_of(page: str) -> list[dict]:
    """All stages that a page lists."""
    text = (ROOT / f"docs/methods/{page}.md").read_text("utf-8")
    blocks = re.findall(r"^    stages:\n(?:      .*\n)+", text, re.MULTILINE)
    return [stage for number, block in enumerate(blocks) for stage in named(yaml.safe_load(block)["stages"], number)]


def named(stages: list[dict], number: int) -> list[dict]:
    """The blocks of a page follow each other: their stages must not share a name."""
    return [{**stage, "name": f"{stage.get('name', stage['method'])}-{number}"} for stage in stages]


@pytest.fixture
def data(kitchen):
    """Files with the names that the pages use."""
    rows = {
        "tickets.txt": [f"{text} {n}" for n, text in enumerate(SENTENCES)],
        "faq.csv": [
            "question,answer",
            *(f'"where {text}","there {text[:20]} {n}"' for n, text in enumerate(SENTENCES)),
        ],
        "nli.tsv": ["anchor\tpositive\tnegative", *(f"{text}\t{text[::-1]}\tno {text}" for text in SENTENCES)],
        "tickets.csv": ["text,label", *(f'"{text} {n}",{"abc"[n % 3]}' for n, text in enumerate(SENTENCES))],
        "sts.csv": [
            "sentence1,sentence2,score",
            *(f'"{text}","{text[:9]} {n}",{n}' for n, text in enumerate(SENTENCES)),
        ],
    }
    for name, lines in rows.items():
        (kitchen.folder / name).write_text("\n".join(lines) + "\n", "utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_stages_of_a_page(page, kitchen, data):
    stages = [{**stage, **FEW, "chunk": 2} for stage in stages_of(page)]
    (result,) = kitchen.run(*stages, pooling="mean")
    assert result.stages[-1]["outcome"]["steps"] == 3
    before, after = Encoder.load(kitchen.base, pooling="mean"), Encoder.load(result.model)
    assert abs(after.encode(SENTENCES) - before.encode(SENTENCES)).max() > 0
