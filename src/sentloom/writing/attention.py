"""Attention of models whose heads share keys and values (Llama and its relatives), without repeating these per head."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

GROUPED = "sentloom_grouped"  # the name of `grouped_attention` in transformers' registry


def grouped_attention(
    module: nn.Module,
    query: Tensor,  # (n, heads, L, D)
    key: Tensor,  # (n, shared, K, D), like value
    value: Tensor,
    attention_mask: Tensor | None,  # (n, 1, L, K)
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, None]:
    """Heads with the same keys and values are further queries to them.

    transformers copies keys and values for each head whenever there is a mask, so for every token that is written.
    """
    rows, heads, length, width = query.shape
    shared = key.shape[1]
    if attention_mask is None or heads == shared or dropout or module.training:
        options = {"scaling": scaling, "dropout": dropout, **others}
        plain: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return plain
    group = heads // shared
    together = query.reshape(rows, shared, group * length, width)
    mask = attention_mask.repeat(1, 1, group, 1)  # (n, 1, group * L, K)
    found = F.scaled_dot_product_attention(together, key, value, attn_mask=mask, scale=scaling)
    return found.reshape(rows, heads, length, width).transpose(1, 2), None


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
