"""The flow is invertible, its log-determinant is that of the Jacobian, and training makes vectors more likely."""

import math

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.errors import InputError, ModelError
from sentloom.lab.baselines.flow import BATCH, ActNorm, Flowed, Glow, fit_flow
from sentloom.lab.baselines.names import parse_baseline


@pytest.fixture
def glow():
    """A flow of random weights: one that has just started shifts nothing."""
    torch.manual_seed(0)
    flow = Glow(16).double()
    flow(torch.randn(40, 16, dtype=torch.float64) * 3 + 1)  # sets the activation norms
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return flow


def test_the_inverse_undoes_the_flow(glow):
    x = torch.randn(7, 16, dtype=torch.float64)
    z, _ = glow(x)
    assert not torch.allclose(z, x)
    assert torch.allclose(glow.inverse(z), x, atol=1e-9)


def test_the_log_determinant_is_that_of_the_jacobian(glow):
    for x in torch.randn(3, 16, dtype=torch.float64):
        jacobian = torch.autograd.functional.jacobian(lambda row: glow(row[None])[0][0], x)
        assert torch.linalg.slogdet(jacobian).logabsdet.item() == pytest.approx(glow(x[None])[1].item(), abs=1e-9)


def test_the_loss_is_the_negative_log_likelihood_in_bits_per_dimension(glow):
    x = torch.randn(5, 16, dtype=torch.float64)
    z, log_determinant = glow(x)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(dim=1) + log_determinant
    assert glow.loss(x).item() == pytest.approx(-density.mean().item() / (16 * math.log(2)))


def test_the_first_batch_is_normalised():
    norm = ActNorm(4)
    x = torch.randn(50, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + 5
    y, log_determinant = norm(x)
    assert y.mean(dim=0).abs().max() < 1e-5
    assert y.std(dim=0, correction=0).tolist() == pytest.approx([1.0] * 4, abs=1e-4)
    assert log_determinant.item() == pytest.approx(-x.std(dim=0, correction=0).log().sum().item(), abs=1e-3)


def test_training_makes_the_vectors_more_likely_and_depends_on_nothing_but_the_seed(small, texts):
    plain = small.copy()
    plain.unit_length = False
    vectors = torch.from_numpy(plain.encode(texts * 8))
    torch.manual_seed(0)
    start = Glow(vectors.shape[1])
    start(vectors[:BATCH])
    fitted = fit_flow(small, texts * 8)
    assert fitted.glow.loss(vectors) < start.loss(vectors)
    state = torch.get_rng_state()
    assert fit_flow(small, texts * 8).fingerprint() == fitted.fingerprint()
    assert torch.equal(torch.get_rng_state(), state)
    assert fit_flow(small, texts * 8, seed=1).fingerprint() != fitted.fingerprint()


def test_vectors_are_the_flow_of_the_pooled_states(small_folder, texts):
    base = Encoder.load(small_folder, pooling="last-two")
    fitted = fit_flow(base, texts)
    plain = base.copy()
    plain.unit_length = False
    z = fitted.glow(torch.from_numpy(plain.encode(texts[:5])))[0].numpy()
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert fitted.encode(texts[:5]) == pytest.approx(unit, abs=1e-5)
    assert not np.allclose(base.encode(texts[:5]), unit, atol=1e-2)


def test_it_is_opened_by_name_and_fitted_on_the_scored_text_or_a_file(small_folder, texts, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(texts))
    on_target = parse_baseline(f"flow:{small_folder}").open(pooling="first-last")
    assert type(on_target) is Flowed
    on_file = parse_baseline(f"flow:{small_folder}:{data}").open(pooling="first-last")
    assert np.array_equal(on_file.encode(texts), on_target.encode(texts))
    with pytest.raises(ModelError, match="flow"):
        on_file.save(tmp_path / "model")


def test_a_width_that_cannot_be_halved_is_refused():
    with pytest.raises(InputError, match="12 dimensions"):
        Glow(12)
