"""Shared encoders: loaded once as long as their files stay the same, and never mixed up."""

import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.loading import SharedEncoders
from sentloom.encoder.reshaping import merge
from tests.encoder.small_models import build_model_folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def shared():
    return SharedEncoders()


def test_the_same_files_are_loaded_once(shared, bert):
    encoder = shared(bert)
    assert shared(bert) is encoder
    assert shared(str(bert)) is encoder
    assert encoder.fingerprint() == Encoder.load(bert).fingerprint()


def test_other_settings_are_another_encoder(shared, bert):
    first, second = shared(bert, pooling="first"), shared(bert, pooling="mean")
    assert (str(first.pooling), str(second.pooling)) == ("first", "mean")
    assert shared(bert, max_length=8).tokens.max_length == 8
    assert shared(bert, prompts={}) is not shared(bert)


def test_a_folder_that_is_written_again_is_loaded_again(shared, tmp_path):
    folder = build_model_folder("bert", tmp_path / "bert")
    before = shared(folder)
    changed = Encoder.load(folder)
    with torch.no_grad():
        next(changed.parameters()).add_(1)
    changed.save(folder, golden=False)
    after = shared(folder)
    assert after is not before
    assert after.fingerprint() == changed.fingerprint() != before.fingerprint()


def test_a_copy_has_the_fingerprint_of_its_own_weights(shared, bert):
    encoder = shared(bert)
    copy = encoder.copy()
    with torch.no_grad():
        next(copy.parameters()).add_(1)
    assert copy.fingerprint() != encoder.fingerprint()
    assert merge([encoder, copy]).fingerprint() not in (encoder.fingerprint(), copy.fingerprint())


def test_the_least_recently_used_encoders_are_dropped(bert):
    shared = SharedEncoders(most=2)
    first, second = shared(bert, max_length=5), shared(bert, max_length=6)
    assert shared(bert, max_length=5) is first
    shared(bert, max_length=7)  # drops 6
    assert shared(bert, max_length=5) is first
    assert shared(bert, max_length=6) is not second


def test_an_encoder_that_is_too_large_is_not_kept(bert):
    shared = SharedEncoders(most_bytes=1)
    assert shared(bert) is not shared(bert)
    assert not shared.loaded
