"""TSDAE: reconstruct a sentence from the vector of what is left of it.

Wang, Reimers and Gurevych, Findings of EMNLP 2021. Symbols: x is a sentence of l tokens, x~ what is left of it after
deletion, c = Enc(x~) its sentence vector, h_t the decoder's state at step t, e_t the embedding of token t.
"""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.backbone import SHORTEST_WHEN_PADDED
from sentloom.encoder.loading import quiet
from sentloom.encoder.packing import plan, set_dropout
from sentloom.errors import InputError
from sentloom.methods.method import Method, Options, TokenMethod
from sentloom.methods.mlm import NoBody
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Share

DECODERS = ("bert", "camembert", "electra", "roberta", "xlm-roberta")  # transformers has a decoder of these families


class TsdaeOptions(Options):
    """The paper's choices: deletion as the only noise, 60% of it, and a decoder that shares the encoder's weights."""

    deletion: Share = 0.6  # of the tokens of a sentence, each by itself; one is always left


class Tsdae(TokenMethod, Method):
    """Eq. 1: -log p(x | x~) = -sum_t log softmax(h_t . e_t), h_t from the tokens before t and from c; mean over tokens.

    The decoder has the encoder's layers, with cross-attention whose only key and value is c; it is dropped afterwards.
    """

    NAME = "tsdae"
    REVISION = 2
    Options = TsdaeOptions
    options: TsdaeOptions
    PRESETS = read_presets(__file__)

    def __init__(self, encoder: Encoder, options: TsdaeOptions) -> None:
        super().__init__(encoder, options)
        if encoder.dimension != encoder.backbone.width:
            problem = f"the vectors have {encoder.dimension} dimensions and the layers {encoder.backbone.width}"
            raise InputError(
                "tsdae", problem, "vectors that the decoder can read", "choose a base without a projection"
            )
        self.decoder, self.head = tied_decoder(encoder)

    def weight(self, batch: Batch) -> float:
        """The number of tokens to reconstruct."""
        return float(max(1, sum(len(ids) - 1 for ids in self.encoder.tokenize(batch.first))))

    def summed_loss(self, batch: Batch) -> Tensor:
        """Eq. 1, summed over the tokens of all sentences. The decoder pads, so similar lengths run together."""
        x = self.encoder.tokenize(batch.first)
        c = self.encoder(self.noisy(batch, x), raw=True)  # (n, d)
        lengths = np.array([len(ids) for ids in x])
        groups = plan(lengths, int(lengths.sum()), SHORTEST_WHEN_PADDED)
        return torch.stack([self.reconstruction([x[row] for row in rows], c[rows]) for rows in groups]).sum()

    def reconstruction(self, x: list[list[int]], c: Tensor) -> Tensor:
        """-log p(x | x~), summed over some sentences, from their vectors c, (n, d)."""
        padding = self.encoder.backbone.padding
        lengths = torch.tensor([len(ids) - 1 for ids in x], device=c.device)
        ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in x], True, padding).to(c.device)  # (n, l)
        mask = torch.arange(ids.shape[1] - 1, device=c.device)[None, :] < lengths[:, None]  # (n, l - 1)
        states = self.decoder(
            input_ids=ids[:, :-1], attention_mask=mask.long(), encoder_hidden_states=c[:, None], use_cache=False
        ).last_hidden_state
        logits = self.head(inputs_embeds=states[mask][None]).logits[0]  # (tokens, vocabulary)
        return F.cross_entropy(logits.float(), ids[:, 1:][mask], reduction="sum")

    def noisy(self, batch: Batch, x: list[list[int]]) -> list[list[int]]:
        """x~: every token but the special ones is deleted with the same probability, drawn for each row by itself."""
        specials = set(self.encoder.tokens.tokenizer.all_special_ids)
        left = []
        for place, ids in zip(batch.places, x, strict=True):
            draw = batch.random(int(place))
            words = np.array([token not in specials for token in ids], bool)
            kept = ~words | (draw.random(len(ids)) >= self.options.deletion)
            if words.any() and not (kept & words).any():
                kept[draw.choice(np.flatnonzero(words))] = True
            left.append(np.array(ids)[kept].tolist())
        return left


def tied_decoder(encoder: Encoder) -> tuple[nn.Module, nn.Module]:
    """A decoder that shares all weights it has in common with the encoder, and its head over the word embeddings.

    Cross-attention and the head's own layers start from random weights.
    """
    model = encoder.backbone.model
    if model.config.model_type not in DECODERS:
        problem = f"there is no decoder for a {model.config.model_type} model"
        raise InputError("tsdae", problem, f"one of {', '.join(DECODERS)}", "choose another base or method")
    config = deepcopy(model.config)
    config.is_decoder, config.add_cross_attention = True, True
    with quiet():
        head = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    set_dropout(head, encoder.backbone.dropout)
    body = getattr(head, head.base_model_prefix)
    own = dict(model.named_parameters())
    if any("lora_" in name for name in own):
        problem = "the decoder shares the encoder's weights, which LoRA freezes"
        raise InputError("tsdae", problem, "weights that learn", "remove lora from the stage")
    for name, _ in list(body.named_parameters()):
        if name in own:
            place, _, last = name.rpartition(".")
            setattr(body.get_submodule(place), last, own[name])
    head.get_output_embeddings().weight = model.get_input_embeddings().weight
    setattr(head, head.base_model_prefix, NoBody())
    return body, head
