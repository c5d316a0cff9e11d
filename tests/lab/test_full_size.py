"""A row of every paper runs two steps from checkpoints of the paper's size, with random weights, in folders of their names.

Recipe, options and commands are those of the paper's scale; only steps, batches, seeds and the rows of files are fewer.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

from sentloom.encoder.loading import quiet
from sentloom.lab.checkpoint_sizes import paper_sizes
from sentloom.lab.tiny import write_tiny_data, write_tiny_models

pytestmark = pytest.mark.long

TWO_STEPS = ("steps=2", "batch=4", "chunk=2")
FEW_SETS = ("evaluate.sets=[STS-B]",)
ROWS = {  # by table: the row, its checkpoints and their millions of parameters, its training stages, other changes
    "bsl/table-4": ("NLI entailment", {"google-bert/bert-base-uncased": 109}, ("bsl",), FEW_SETS),
    "self-guided/table-1": (
        "BERT-base, Contrastive (SG-OPT), CLS",
        {"google-bert/bert-base-uncased": 109},
        ("learn",),
        (),
    ),
    "sentence-t5/table-3": ("ST5-EncDec first, NLI", {"google-t5/t5-base": 223}, ("nli",), FEW_SETS),
    "gense/figure-2": (
        "GenSE",
        {"google-t5/t5-base": 223},
        ("writer", "synthetic", "nli"),
        ("writer.held_out=0.3", "written.rows=8", "written.threshold=0", "written.length=8"),
    ),
    "cross-lingual/table-5": (
        "Ours",
        {"FacebookAI/roberta-base": 125, "chinese-encoder": 325},
        ("back",),
        (),
    ),
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Files of a few rows, named by the variables of the recipes, and tokenizers."""
    monkeypatch.chdir(tmp_path)
    values = write_tiny_data(tmp_path / "files", None)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return write_tiny_models(tmp_path / "tiny", tmp_path / "files" / "sentences.txt")


def write_checkpoint(name, tokenizer, millions):
    """Random weights in the architecture of the paper's checkpoint."""
    config = AutoConfig.for_model(**paper_sizes()["models"][name])
    if config.is_encoder_decoder:
        config.decoder_start_token_id = config.pad_token_id  # as T5's own says
    torch.manual_seed(0)
    model = (AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModel).from_config(config)
    assert sum(weight.numel() for weight in model.parameters()) == pytest.approx(millions * 1e6, rel=0.02)
    with quiet():
        model.save_pretrained(name)
    shutil.copy(f"{tokenizer}/tokenizer_config.json", name)
    write_tokenizer(Path(tokenizer, "tokenizer.json"), Path(name, "tokenizer.json"), config.vocab_size)


def write_tokenizer(learned, place, size):
    """A learned tokenizer; a T5's gets as many words as the model has, since it writes any of them."""
    tokenizer = json.loads(learned.read_text("utf-8"))
    if tokenizer["model"]["type"] == "Unigram":
        pieces = tokenizer["model"]["vocab"]
        pieces += [[f"▁word{number}", -30.0] for number in range(size - len(pieces))]
    place.write_text(json.dumps(tokenizer), "utf-8")


@pytest.mark.parametrize("table", ROWS)
def test_a_row_takes_two_steps_at_full_size(table, small, sentloom, tmp_path):
    row, checkpoints, trained, changes = ROWS[table]
    for name, millions in checkpoints.items():
        write_checkpoint(name, small["t5" if "t5" in name else "bert"], millions)
    changes = [*changes, "seeds=[1]", *(f"{stage}.{change}" for stage in trained for change in TWO_STEPS)]
    options = [word for change in changes for word in ("--set", change)]
    done = sentloom("lab", "reproduce", table, "--row", row, "--data", "files/data", "-o", "out", *options)
    assert done.returncode == 0, done.stderr
    ran = json.loads((tmp_path / "out" / table / "table.json").read_text())["rows"]
    assert list(ran) == [row], done.stdout
    for stage in trained:
        (log,) = (tmp_path / "out" / table / "stages").glob(f"{stage}-*/log.jsonl")
        assert [json.loads(line)["step"] for line in log.read_text().splitlines() if '"loss"' in line][-1] == 2
