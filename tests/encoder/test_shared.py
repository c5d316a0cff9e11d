"""Shared encoders: loaded once as long as their files stay the same, and never mixed up."""

import pytest
import torch

from sentloom.encoder import Encoder, shared
from sentloom.encoder.merging import merge
from sentloom.encoder.shared import shared_encoder
from tests.encoder.small_models import build_model_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_loaded", type(shared._loaded)())
    return build_model_folder("bert", tmp_path / "bert")


def test_the_same_files_are_loaded_once(folder):
    one = shared_encoder(folder)
    assert shared_encoder(folder) is one
    assert shared_encoder(str(folder)) is one
    assert one.fingerprint() == Encoder.load(folder).fingerprint()


def test_other_settings_are_another_encoder(folder):
    first, second = shared_encoder(folder, pooling="first"), shared_encoder(folder, pooling="mean")
    assert (str(first.pooling), str(second.pooling)) == ("first", "mean")
    assert shared_encoder(folder, max_length=8).tokens.max_length == 8
    assert shared_encoder(folder, prompts={}) is not shared_encoder(folder)


def test_a_folder_that_is_written_again_is_loaded_again(folder):
    before = shared_encoder(folder)
    changed = Encoder.load(folder)
    with torch.no_grad():
        next(changed.parameters()).add_(1)
    changed.save(folder, golden=False)
    after = shared_encoder(folder)
    assert after is not before
    assert after.fingerprint() == changed.fingerprint() != before.fingerprint()


def test_a_copy_has_the_fingerprint_of_its_own_weights(folder):
    one = shared_encoder(folder)
    other = one.copy()
    with torch.no_grad():
        next(other.parameters()).add_(1)
    assert other.fingerprint() != one.fingerprint()
    assert merge([one, other]).fingerprint() not in (one.fingerprint(), other.fingerprint())


def test_the_least_recently_used_encoders_are_dropped(folder, monkeypatch):
    monkeypatch.setattr(shared, "MOST", 2)
    first = shared_encoder(folder, max_length=5)
    shared_encoder(folder, max_length=6)
    assert shared_encoder(folder, max_length=5) is first
    shared_encoder(folder, max_length=7)  # drops 6
    assert shared_encoder(folder, max_length=5) is first
    monkeypatch.setattr(shared, "MOST_BYTES", 1)
    assert shared_encoder(folder, max_length=5) is first
    assert not shared._loaded
