"""After a fit on raw text, ticking is advised only if it is possible: base and model have to disagree."""

import json
import re
from random import Random

import pytest

from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    words, random = " ".join(SENTENCES).split(), Random(0)
    texts = [" ".join(random.sample(words, 12)) + "." for _ in range(300)]
    (folder / "notes.txt").write_text("\n".join(texts) + "\n", "utf-8")
    build_model_folder("bert", folder / "bert")
    return folder


def test_nothing_is_advised_that_is_refused(sentloom, place, monkeypatch):
    monkeypatch.chdir(place)
    done = sentloom("fit", "notes.txt", "-o", "model", "--base", "bert", "--budget", "1steps", "--force")
    same, total = map(int, re.search(r"the same first result for (\d+) of (\d+) held-out queries", done.stdout).groups())
    assert "There is nothing to decide" in done.stdout
    pages = [place / "model.fit/report.md", place / "model.fit/report.html", place / "model/README.md"]
    for text in (done.stdout, *(page.read_text("utf-8") for page in pages)):
        assert "sentloom tick" not in text
    assert all("There is nothing to decide" in page.read_text("utf-8") for page in pages[:2])
    refused = sentloom("tick", "model.fit")
    assert refused.returncode == 2
    assert f"different first result for {total - same} of {total} held-out queries" in refused.stderr


def test_ticking_is_advised_where_models_disagree(sentloom, place, monkeypatch):
    """The same fit from a base whose vectors are others: the rule is that of `sentloom tick`."""
    monkeypatch.chdir(place)
    done = sentloom("fit", "notes.txt", "-o", "other", "--base", "bert", "--budget", "300steps", "--force")
    advice = json.loads((place / "other.fit/report.json").read_text("utf-8"))["advice"]
    assert any("`sentloom tick other.fit`" in line for line in advice), done.stdout
