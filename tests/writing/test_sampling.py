import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import chi2_contingency, chisquare

from sentloom.writing.sampling import Draw, Sampling, gumbel, least_kept, sampling_keys
from tests.writing.oracles import limited, noise

LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0, -3.0])
SETTINGS = [
    Sampling(),
    Sampling(top_p=1.0),
    Sampling(top_p=0.6, temperature=1.7),
    Sampling(top_p=1.0, top_k=3),
    Sampling(top_p=0.9, top_k=4, temperature=0.8),
]


def drawn(logits, sampling, keys, position=0):
    """The words (n,) that are drawn for each key from the same logits, or from each row's own."""
    scores = logits.expand(len(keys), -1) if logits.dim() == 1 else logits
    return Draw(sampling, keys).noisy(scores, position).argmax(dim=1).numpy()


def test_noise_is_made_of_the_published_numbers():
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]  # of seed 1234567
    expected = [-math.log(-math.log(((number >> 12) + 0.5) / 2**52)) for number in first]
    noise = gumbel(np.full(4, 1234567, np.uint64), np.arange(4, dtype=np.uint64))
    np.testing.assert_allclose(noise, expected, rtol=1e-12)


@pytest.mark.parametrize("sampling", SETTINGS)
def test_words_are_drawn_from_the_limited_softmax(sampling):
    keys = sampling_keys(1, [(source, 0, 0) for source in range(40_000)])
    words = drawn(LOGITS, sampling, keys)
    shares = limited(LOGITS[None], sampling)[0].double().softmax(0).numpy()
    counts = np.bincount(words, minlength=len(LOGITS))
    possible = shares > 0
    assert counts[~possible].sum() == 0
    assert chisquare(counts[possible], shares[possible] / shares[possible].sum() * len(words)).pvalue > 0.001


@pytest.mark.parametrize("changed", ["seed", "source", "kind", "candidate", "position"])
def test_draws_that_differ_in_one_number_have_nothing_to_do_with_each_other(changed):
    sampling, at = Sampling(top_p=1.0), {"seed": 0, "source": 0, "kind": 0, "candidate": 0, "position": 0}
    sides = []
    for values in (at, at | {changed: 1}):
        names = [(2 * source + values["source"], values["kind"], values["candidate"]) for source in range(20_000)]
        sides.append(drawn(LOGITS[:4], sampling, sampling_keys(values["seed"], names), values["position"]))
    table = np.histogram2d(*sides, bins=4)[0]
    assert chi2_contingency(table).pvalue > 0.001


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40), st.integers(0, 9), st.integers(0, 70), st.integers(0, 300))
def test_noise_is_what_python_counts(seed, source, candidate, position, word):
    logits = torch.full((1, 301), -torch.inf)
    logits[0, word] = 3.0
    draw = Draw(Sampling(top_p=1.0, temperature=2.0), sampling_keys(seed, [(source, 1, candidate)]))
    found = draw.noisy(logits, position)[0, word]
    assert float(found) == pytest.approx(1.5 + noise((seed, source, 1, candidate, position), word), rel=1e-12)


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("sampling", [*SETTINGS, Sampling(top_k=50), Sampling(top_p=0.999), Sampling(top_p=1e-9)])
def test_what_is_kept_is_what_transformers_keeps(sampling, spread):
    """5,000 words: a flat softmax has a nucleus far wider than the first look, a peaked one of a few words."""
    scores = spread * torch.randn(7, 5000, generator=torch.Generator().manual_seed(3))
    kept = scores >= least_kept(scores, sampling)
    expected = limited(scores.double(), sampling).isfinite()
    assert (kept != expected).sum() <= 1  # at the border, where the sums' last digits decide
    assert kept.any(dim=1).all()


@given(st.lists(st.integers(0, 39), min_size=1, max_size=40, unique=True), st.integers(0, 5))
def test_company_does_not_matter(rows, seed):
    scores = 3 * torch.randn(40, 600, generator=torch.Generator().manual_seed(seed))
    keys = sampling_keys(seed, [(source, 1, 2) for source in range(40)])
    sampling = Sampling(top_p=0.95)
    together = Draw(sampling, keys).noisy(scores, 2)
    alone = Draw(sampling, keys[rows]).noisy(scores[rows], 2)
    assert torch.equal(together[rows], alone)
    assert torch.equal(Draw(sampling, keys).noisy(scores[rows], 2, np.array(rows)), alone)  # the others have ended


def test_keys_are_all_different():
    names = [(source, kind, candidate) for source in range(3000) for kind in (0, 1) for candidate in range(5)]
    keys = np.concatenate([sampling_keys(seed, names) for seed in range(4)])
    assert len(np.unique(keys)) == len(keys)
    assert sampling_keys(1, []).shape == (0,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -1}, {"temperature": 0.0}, {"candidates": 0}, {"length": 0},
        {"seed": -1}, {"seed": 2**32}, {"greedy": True, "candidates": 2}, {"beams": 3},
    ],
)  # fmt: skip
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        Sampling(**wrong)
