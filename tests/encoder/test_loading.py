"""The parts of an encoder fit each other, or loading is refused."""

import json

import pytest
from transformers import BartConfig, BartModel
from transformers.utils import logging

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.loading import quiet
from sentloom.encoder.saving import write_model
from sentloom.errors import InputError, ModelError
from tests.encoder.small_models import build_model_folder


def test_a_length_beyond_the_positions_is_clipped_if_saved_and_refused_if_requested(folder):
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 100_000}))
    assert Encoder.load(folder).tokens.max_length == 64
    assert Encoder.load(folder, max_length=10).tokens.max_length == 10
    for length in (0, 65):
        with pytest.raises(InputError, match="1 to 64"):
            Encoder.load(folder, max_length=length)


def test_unsupported_encoder_decoders_are_refused(tmp_path):
    build_model_folder("roberta", tmp_path / "bart")
    small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
    BartModel(BartConfig(vocab_size=400, decoder_attention_heads=2, **small)).save_pretrained(tmp_path / "bart")
    with pytest.raises(ModelError, match="family bart"):
        Encoder.load(tmp_path / "bart")


def test_projections_must_fit_the_model_and_each_other(model_folders, tmp_path):
    base = Encoder.load(model_folders["bert"])
    heads = [Projection(32, 24), Projection(16, 8)]
    (tmp_path / "model").mkdir()
    write_model(Encoder(base.backbone, base.tokens, pooling=base.pooling, heads=heads), tmp_path / "model")
    with pytest.raises(ModelError, match=r"modules\.json: projection 2 has 16 inputs. Expected 24"):
        Encoder.load(tmp_path / "model")


def test_transformers_is_quiet_only_while_loading():
    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    with pytest.raises(ZeroDivisionError), quiet():
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (logging.ERROR, False)
        1 / 0  # noqa: B018
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
