"""Templates: prompts with a mask token, whose state is the sentence's vector (PromptBERT: Jiang et al., EMNLP 2022).

What a template gives around nothing is its bias, which a contrastive loss can leave out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import MASK_TOKEN, pool_at
from sentloom.encoder.tokens import ROLES, Prompt, Prompts, Tokens, prompt_for
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.encoder.encoder import Encoder

WHERE = f"pooling {MASK_TOKEN!r}"


def manual_template(tokens: Tokens) -> Prompts:
    """The template of the paper's that was not searched for, with this tokenizer's mask token."""
    return {"symmetric": Prompt('This sentence : "', f'" means {mask_token(tokens)} .')}


def mask_token(tokens: Tokens) -> str:
    """The mask token; a tokenizer without one is refused."""
    if tokens.mask < 0:
        problem, expected = "the tokenizer has no mask token", "a masked language model, such as BERT"
        raise InputError(WHERE, problem, expected, "choose another pooling")
    return str(tokens.tokenizer.mask_token)


def check_template(tokens: Tokens, prompts: Prompts) -> None:
    """Refuse a prompt of any role that has no mask token."""
    for prompt in (prompt_for(prompts, role) for role in ROLES):
        token = mask_token(tokens)
        if tokens.mask not in tokens.bare([prompt.prefix + prompt.suffix])[0]:
            problem = f"the prompt {prompt.prefix + '{}' + prompt.suffix!r} has no {token}"
            example = "Prompt('This sentence : \"', '\" means " + token + " .')"
            raise InputError(WHERE, problem, f"a template with {token}", f"give a prompt such as {example}")


def template_bias(encoder: "Encoder", prompt: Prompt, lengths: Sequence[int]) -> Tensor:
    """The pooled states (n, d) of a template around nothing, in place of sentences with these numbers of tokens.

    What comes after a sentence keeps its positions. `lengths` include those of the template.
    """
    tokens = encoder.tokens
    before = [*tokens.specials.before, *(tokens.bare([prompt.prefix])[0] if prompt.prefix else [])]
    template = [*before, *tokens.suffix_ids(prompt.suffix), *tokens.specials.after]
    distinct, rows = np.unique(lengths, return_inverse=True)
    packed = pack([template] * len(distinct), np.arange(len(distinct)), encoder.device)
    moved = (distinct - len(template)).clip(0)[:, None] * (np.arange(len(template)) >= len(before))
    positions = packed.positions + torch.from_numpy(moved.reshape(1, -1)).to(encoder.device)
    (states,) = encoder.backbone.states(replace(packed, positions=positions))
    bias = pool_at(states, packed.ids[0] == tokens.mask, packed.runs)
    return bias[torch.from_numpy(rows).to(encoder.device)]
