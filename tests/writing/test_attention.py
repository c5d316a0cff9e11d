"""Attention with shared keys and values: the same numbers as transformers', which repeats them for every head."""

import pytest
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from sentloom.writing.causal import GROUPED, Causal, grouped_attention
from tests.writing.small_causal import build_small_causal

ROWS, KEYS, WIDTH = 3, 11, 8


class Layer(nn.Module):
    """What attention reads of a layer."""

    is_causal = True

    def __init__(self, groups):
        super().__init__()
        self.num_key_value_groups = groups


def states(heads, shared, length):
    random = torch.Generator().manual_seed(heads * length)
    sizes = [(ROWS, heads, length, WIDTH), (ROWS, shared, KEYS, WIDTH), (ROWS, shared, KEYS, WIDTH)]
    return [torch.randn(size, generator=random) for size in sizes]


def causal_mask(length):
    """(n, 1, length, KEYS): the queries are the last places; each row has another number of padded places."""
    places = torch.arange(KEYS)
    seen = places[None] <= torch.arange(KEYS - length, KEYS)[:, None]
    read = places[None] >= torch.arange(ROWS)[:, None]
    return (seen[None] & read[:, None])[:, None]


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize(("heads", "shared"), [(6, 2), (4, 1), (3, 3)])
def test_it_is_attention_with_repeated_keys(heads, shared, length):
    layer = Layer(heads // shared).eval()
    inputs = (layer, *states(heads, shared, length), causal_mask(length))
    expected, _ = sdpa_attention_forward(*inputs, scaling=0.3)
    attended, _ = grouped_attention(*inputs, scaling=0.3)
    assert attended.shape == (ROWS, length, heads, WIDTH)
    torch.testing.assert_close(attended, expected)


def test_without_a_mask_it_is_causal():
    query, _, _ = states(6, 2, KEYS)
    _, key, value = states(6, 2, KEYS)
    layer = Layer(3).eval()
    attended, _ = grouped_attention(layer, query, key, value, None)
    expected, _ = grouped_attention(
        layer, query, key, value, torch.ones(KEYS, KEYS, dtype=torch.bool).tril()[None, None]
    )
    torch.testing.assert_close(attended, expected)


def test_causal_models_use_it_and_their_files_do_not_say_so(tmp_path):
    model = Causal.load(build_small_causal(tmp_path / "model"))
    assert model.model.config._attn_implementation == GROUPED
    model.save(tmp_path / "saved")
    assert GROUPED not in (tmp_path / "saved" / "config.json").read_text()
