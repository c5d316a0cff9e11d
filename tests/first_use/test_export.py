"""`sentloom export` keeps its promise: a form with other vectors is written only by whoever accepts what it loses."""

import json
import re
from pathlib import Path

import pytest
import yaml
from transformers import AutoConfig, AutoModel

import sentloom as library
from tests.encoder.small_models import build_model_folder

CARD = """---
license: bsd-3-clause
base_model: owner/base
tags:
- sentloom
---

# bert, fitted to notes.txt

## Use

Load "bert".

## Results

Better than its base.
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small model with more dimensions than static vectors have, enough words for these, and a card of its own."""
    folder = build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    words = tokenizer["model"]["vocab"]
    words |= {f"word{n}": len(words) + n for n in range(300)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    size = {"hidden_size": 264, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": len(words)}
    wider = AutoConfig.from_pretrained(folder, **size)
    AutoModel.from_config(wider).save_pretrained(folder)
    (folder / "README.md").write_text(CARD, "utf-8")
    return folder


@pytest.fixture
def triplets(tmp_path):
    file = tmp_path / "triplets.tsv"
    rows = [f"a man plays {n}\ta man is playing {n}\ttwo dogs run" for n in range(30)]
    file.write_text("anchor\tpositive\tnegative\n" + "\n".join(rows) + "\n", "utf-8")
    return file


def export(sentloom, model, to, folder, *more):
    return sentloom("export", model, "--to", to, "-o", folder, *more)


@pytest.mark.parametrize("to", ["static", "ctranslate2-int8"])
def test_other_vectors_are_refused_with_their_loss(sentloom, model, to, tmp_path):
    pytest.importorskip("model2vec.distill" if to == "static" else "ctranslate2")
    done = export(sentloom, model, to, tmp_path / "new")
    assert done.returncode == 2
    scores = r"\d+\.\d\d before, \d+\.\d\d after, accuracy on general triplets"
    assert re.search(rf"it loses \d+\.\d\d points \({scores}\)", done.stderr)
    assert "Encoding tokens" not in done.stderr  # a progress bar of model2vec, where there is no terminal
    assert "so nothing was written" in done.stderr
    assert re.search(r"--accept-loss \d+\.\d+ accepts this loss", done.stderr)
    assert not list(tmp_path.glob("*new*"))


def test_the_advice_of_a_refusal_works(sentloom, model, triplets, tmp_path):
    pytest.importorskip("model2vec.distill")
    refused = export(sentloom, model, "static", tmp_path / "new", "--against", triplets)
    accepted = re.search(r"--accept-loss (\d+\.\d+)", refused.stderr)[1]
    done = export(sentloom, model, "static", tmp_path / "new", "--against", triplets, "--accept-loss", accepted)
    assert done.returncode == 0, done.stderr
    assert "points lost:" in done.stdout
    assert library.Encoder.load(tmp_path / "new").dimension == 256
    assert "256 dimensions instead of 264" in done.stdout
    assert "256 dimensions instead of 264" in refused.stderr


def test_more_than_was_accepted_is_refused(model, tmp_path):
    pytest.importorskip("model2vec.distill")
    encoder = library.Encoder.load(model)
    with pytest.raises(library.SentloomError, match=r"it loses \d+\.\d\d points") as refused:
        encoder.export(tmp_path / "new", to="static")
    lost = float(re.search(r"it loses (\d+\.\d\d)", str(refused.value))[1])
    if lost > 0.02:
        with pytest.raises(library.SentloomError, match="points lost") as refused:
            encoder.export(tmp_path / "new", to="static", accept_loss=lost - 0.02)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("points", ["-1", "nan", "inf"])
def test_a_loss_that_is_none_is_refused(sentloom, model, points, tmp_path):
    done = export(sentloom, model, "static", tmp_path / "new", "--accept-loss", points)
    assert done.returncode == 2
    assert "accept-loss" in done.stderr
    assert not (tmp_path / "new").exists()


def read_card(folder: Path) -> tuple[dict, str]:
    text = (folder / "README.md").read_text("utf-8")
    return yaml.safe_load(text.split("---")[1]), text


def test_the_card_is_about_the_model(sentloom, model, triplets, tmp_path):
    pytest.importorskip("model2vec.distill")
    export(sentloom, model, "static", tmp_path / "new", "--against", triplets, "--accept-loss", "100")
    facts, text = read_card(tmp_path / "new")
    assert facts["license"] == "bsd-3-clause"
    assert facts["base_model"] == "owner/base"
    assert "# new, exported to static" in text
    assert "| dimensions | 264 | 256 |" in text
    assert "| accuracy on triplets.tsv |" in text
    assert "| points lost |" in text
    assert "Better than its base." in text
    assert 'Load "bert"' not in text  # the use of another folder
    for unwanted in (str(tmp_path), str(model.parent), ".part-", "Model2Vec", "Minish"):
        assert unwanted not in text


def test_the_card_of_the_embedded_encoder_has_its_licence(sentloom, tmp_path):
    done = export(sentloom, "embedded", "sentence-transformers", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    facts, text = read_card(tmp_path / "new")
    assert facts["license"] == "apache-2.0"
    assert facts["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert "site-packages" not in text


@pytest.mark.parametrize("damaged", ["---\n- [", "---\nlicense: {a: b}\nbase_model: /home/me/x\n---\n", "\udcff"])
def test_a_damaged_card_of_the_model_stops_nothing(sentloom, damaged, tmp_path):
    folder = build_model_folder("bert", tmp_path / "bert")
    (folder / "README.md").write_text(damaged, "utf-8", "surrogateescape")
    done = export(sentloom, folder, "sentence-transformers", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    facts, text = read_card(tmp_path / "new")
    assert not {"license", "base_model"} & facts.keys()
    assert "Licence of bert: its card names none." in text


def test_the_help_is_true(sentloom):
    shown = " ".join(sentloom("export", "--help").stdout.split())
    assert "only with --accept-loss POINTS" in shown
