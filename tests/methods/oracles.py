"""The papers' losses over vectors, by loops over numpy's float64; `skip(i, j)` says what is no negative of what."""

import numpy as np
import torch
from scipy.special import erf
from transformers import AutoModel


def nobody(i, j):
    return False


def cos(u, v):
    return float(u @ v / np.sqrt(u @ u) / np.sqrt(v @ v))


def minus_log_share(right, others):
    logits = np.array([right, *others])
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - right)


def info_nce(a, p, tau, skip=nobody):
    rows = range(len(a))
    return np.mean(
        [
            minus_log_share(cos(a[i], p[i]) / tau, [cos(a[i], p[j]) / tau for j in rows if j != i and not skip(i, j)])
            for i in rows
        ]
    )


def nt_xent(x, y, tau, skip=nobody):
    losses = []
    for mine, theirs in ((x, y), (y, x)):
        for i in range(len(x)):
            left = [j for j in range(len(x)) if j != i and not skip(i, j)]
            others = [cos(mine[i], side[j]) / tau for side in (mine, theirs) for j in left]
            losses.append(minus_log_share(cos(mine[i], theirs[i]) / tau, others))
    return np.mean(losses)


def opt1(c, h, tau, skip=nobody):
    losses = []
    for i in range(len(c)):
        left = [j for j in range(len(c)) if j != i and not skip(i, j)]
        others = [cos(c[i], side[j]) / tau for side in (c, h) for j in left]
        losses.append(minus_log_share(cos(c[i], h[i]) / tau, others))
    return np.mean(losses)


def opt3(c, h, tau, skip=nobody):
    losses = []
    for i in range(len(c)):
        others = [cos(c[i], v) / tau for m in range(len(c)) if m != i and not skip(i, m) for v in h[m]]
        losses += [minus_log_share(cos(c[i], own) / tau, others) for own in h[i]]
    return np.mean(losses)


@torch.no_grad()
def hidden_states(folder, sentence_ids):
    """transformers' own states of each sentence, run alone in float64: [sentence][layer] -> (tokens, d)."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float64).eval()
    return [
        [
            layer[0].numpy()
            for layer in model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        ]
        for ids in sentence_ids
    ]  # fmt: skip


def mlp(layers, x):
    """Linear maps (weight, bias) of numpy, exact GELU behind each."""
    for weight, bias in layers:
        x = x @ weight.T + bias
        x = x * 0.5 * (1 + erf(x / np.sqrt(2)))
    return x
