"""Attention of a pack against an oracle: sentences apart, windows, causal masks, shared heads, blocks, dropout."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder import attention
from sentloom.encoder.attention import packed_attention
from sentloom.encoder.packing import pack

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


class Causal(torch.nn.Module):
    is_causal = True


def slow_attention(query, key, value, runs, scaling, reach=None, causal=False):
    """Slow oracle: one token of one head at a time, in plain loops."""
    output, shared = torch.zeros_like(query), query.shape[1] // key.shape[1]
    for head in range(query.shape[1]):
        for run in runs:
            for sentence in range(run.count):
                first = run.start + sentence * run.length
                for i in range(first, first + run.length):
                    last = i + 1 if causal else first + run.length
                    seen = [j for j in range(first, last) if reach is None or abs(i - j) < reach]
                    scores = torch.stack([query[0, head, i] @ key[0, head // shared, j] * scaling for j in seen])
                    weights = scores.softmax(0)
                    output[0, head, i] = sum(
                        w * value[0, head // shared, j] for w, j in zip(weights, seen, strict=True)
                    )
    return output.transpose(1, 2)


def random_pack(lengths, heads=(4, 2, 2)):
    runs = pack([[0] * length for length in sorted(lengths, reverse=True)], np.arange(len(lengths))).runs
    generator = torch.Generator().manual_seed(len(lengths))
    drawn = [torch.randn(1, n, sum(lengths), 3, generator=generator, dtype=torch.float64) for n in heads]
    return runs, [x.requires_grad_() for x in drawn]


@given(LENGTHS, st.sampled_from([None, 2, 4]), st.booleans(), st.sampled_from([2, 512]))
def test_attention_stays_inside_the_sentence_the_window_and_the_past(lengths, reach, causal, block):
    runs, states = random_pack(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "BLOCK", block)
        module = Causal() if causal else torch.nn.Identity()
        fast, _ = packed_attention(module, *states, None, runs=runs, scaling=0.5, sliding_window=reach)
    slow = slow_attention(*states, runs, 0.5, reach, causal)
    torch.testing.assert_close(fast, slow)
    weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((out * weights).sum(), states) for out in (fast, slow))
    for gradient, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, expected)


def test_a_call_may_say_that_attention_is_not_causal():
    runs, states = random_pack([5, 3])
    fast, _ = packed_attention(Causal(), *states, None, runs=runs, scaling=0.5, is_causal=False)
    torch.testing.assert_close(fast, slow_attention(*states, runs, 0.5))


@pytest.mark.parametrize("heads", [(4, 4, 4), (4, 2, 2)])
@pytest.mark.parametrize("reach", [None, 3])
@pytest.mark.parametrize("module", [torch.nn.Identity(), Causal()])
def test_without_a_chance_to_drop_anything_dropout_in_blocks_is_plain_attention(heads, reach, module, monkeypatch):
    monkeypatch.setattr(attention, "BLOCK", 4)
    runs, states = random_pack([9, 7, 2], heads)
    dropped, _ = packed_attention(module, *states, None, runs=runs, scaling=0.5, sliding_window=reach, dropout=1e-9)
    plain, _ = packed_attention(module, *states, None, runs=runs, scaling=0.5, sliding_window=reach)
    torch.testing.assert_close(dropped, plain)
    ours, theirs = (torch.autograd.grad(out.square().sum(), states) for out in (dropped, plain))
    for gradient, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, expected)


def test_the_backward_pass_of_a_block_draws_its_dropout_mask_again(monkeypatch):
    """The gradient is that of the masks of the forward pass: attention is linear in the values, so it predicts them."""
    monkeypatch.setattr(attention, "BLOCK", 4)
    runs, (q, k, v) = random_pack([11])
    out, _ = packed_attention(torch.nn.Identity(), q, k, v, None, runs=runs, dropout=0.5)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((out * weights).sum(), v)
    torch.testing.assert_close((gradient * v).sum(), (out * weights).sum())
