"""IS-BERT: features of n-grams, the bound on their mutual information with the sentence, and the vector at inference."""

import math

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.losses import local_global_jsd
from sentloom.methods.is_bert import IsBert, IsBertOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import texts_batch


@pytest.fixture
def method(model_folder):
    torch.manual_seed(0)
    encoder = Encoder.load(model_folder("bert"), max_length=32)
    return IsBert(encoder, IsBertOptions(windows=(1, 2, 3), filters=5)).eval()


def test_features_are_windows_that_wrap_around(method):
    h, lengths = method.embed(texts_batch())
    features = method.features(h, lengths)
    for row, length in enumerate(lengths.tolist()):
        for t in range(length):
            parts = []
            for convolution in method.convolutions:
                size = convolution.weight.shape[2]
                part = convolution.bias.clone()
                for at in range(size):
                    part += convolution.weight[:, :, at] @ h[row, (t + at - size // 2) % length]
                parts.append(part)
            assert torch.allclose(features[row, t], torch.cat(parts), atol=1e-5)


def test_inside_a_sentence_they_are_those_of_a_convolution(method):
    h, lengths = method.embed(texts_batch())
    length = int(lengths[0])
    convolved = method.convolutions[2](h[0, :length].T[None])[0].T  # windows of three, without the ends
    assert torch.allclose(method.features(h, lengths)[0, 1 : length - 1, -5:], convolved, atol=1e-5)


def test_the_vector_is_the_mean_of_the_features(method):
    h, lengths = method.embed(texts_batch())
    features = method.features(h, lengths)
    means = torch.stack([features[row, :length].mean(dim=0) for row, length in enumerate(lengths.tolist())])
    vectors = method.encoder(method.encoder.tokenize(SENTENCES), raw=True)
    assert torch.allclose(vectors, means, atol=1e-5)
    assert method.finished().dimension == 15


def test_the_loss_is_the_bound_computed_by_loops(method):
    batch = texts_batch()
    h, lengths = method.embed(batch)
    features = method.features(h, lengths).detach().double().numpy()
    vectors = [features[row, :length].mean(axis=0) for row, length in enumerate(lengths.tolist())]
    own, others = [], []
    for row, length in enumerate(lengths.tolist()):
        for t in range(length):
            for other, vector in enumerate(vectors):
                score = float(features[row, t] @ vector)
                softplus = np.logaddexp(0, -score if other == row else score)
                (own if other == row else others).append(softplus)
    expected = np.mean(own) + np.mean(others) - 2 * math.log(2)
    assert method.loss((h, lengths), batch).item() == pytest.approx(expected, rel=1e-5)


def test_scores_that_tell_sentences_apart_have_the_least_loss():
    owners = torch.tensor([0, 0, 1])
    right = torch.tensor([[9.0, -9.0], [9.0, -9.0], [-9.0, 9.0]])
    assert local_global_jsd(right, owners).item() == pytest.approx(2 * math.log1p(math.exp(-9)) - 2 * math.log(2))
    assert local_global_jsd(0 * right, owners).item() == pytest.approx(0)
    assert local_global_jsd(-right, owners) > 15


def test_the_saved_encoder_has_the_learned_features(method, tmp_path):
    with torch.no_grad():
        for convolution in method.convolutions:
            convolution.weight.mul_(2)
    method.after_step()
    method.save(tmp_path / "model")
    h, lengths = method.embed(texts_batch())
    features = method.features(h, lengths)
    means = [features[row, :length].mean(dim=0) for row, length in enumerate(lengths.tolist())]
    loaded = Encoder.load(tmp_path / "model").encode(SENTENCES)
    wanted = torch.stack(means)
    if method.encoder.unit_length:
        wanted = torch.nn.functional.normalize(wanted, dim=-1)
    assert np.allclose(loaded, wanted.detach().numpy(), atol=1e-5)


def test_no_part_of_the_head_learns_by_itself(method):
    assert not any(parameter.requires_grad for parameter in method.encoder.heads.parameters())
    assert all(parameter.requires_grad for parameter in method.convolutions.parameters())
