"""Continued training as a masked language model, the papers' baseline BERT-mlm (Devlin et al., 2019)."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as Output

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.loading import quiet
from sentloom.encoder.pretrained import load_weights, staged
from sentloom.errors import InputError, ModelError
from sentloom.methods.method import Method, Options, TokenMethod
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Share


class MlmOptions(Options):
    """Of the chosen tokens, 80% are masked, 10% are replaced by a random token, 10% stay."""

    share: Share = 0.15  # of a sentence's tokens are chosen, at least one
    masked: Share = 0.8
    replaced: Share = 0.1

    @model_validator(mode="after")
    def _no_more_than_all(self) -> "MlmOptions":
        if self.masked + self.replaced > 1 + 1e-9:
            raise ValueError("masked and replaced add up to more than 1")
        return self


class Mlm(TokenMethod, Method):
    """Cross-entropy of the chosen tokens, mean over them.

    The head comes with the base model's weights. If they have none, a new head starts from random weights over the
    model's own word embeddings (`fresh_head`).
    """

    NAME = "mlm"
    Options = MlmOptions
    options: MlmOptions
    PRESETS = read_presets(__file__)

    def __init__(self, encoder: Encoder, options: MlmOptions) -> None:
        super().__init__(encoder, options)
        refuse_no_mask_token(encoder)
        self.head, self.fresh_head = masked_language_head(encoder)
        if self.fresh_head:
            self.notes = ("the base has no masked-language head: a new one starts from random weights",)

    def weight(self, batch: Batch) -> float:
        """The number of chosen tokens."""
        _, places = self.chosen(batch, self.encoder.tokenize(batch.first))
        return float(max(1, sum(map(len, places))))

    def summed_loss(self, batch: Batch) -> Tensor:
        """Cross-entropy at the chosen places."""
        ids = self.encoder.tokenize(batch.first)
        return chosen_losses(self.encoder, self.head, ids, *self.chosen(batch, ids)).sum()

    def chosen(self, batch: Batch, ids: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[np.ndarray]]:
        """The corrupted ids that the model reads, and the places to predict; drawn for each row by itself."""
        draws = (batch.random(int(place)) for place in batch.places)
        return corrupted(ids, draws, self.encoder.tokens.tokenizer, self.options)


def corrupted(
    ids: Sequence[Sequence[int]],
    draws: Iterable[np.random.Generator],
    tokenizer: PreTrainedTokenizerBase,
    options: MlmOptions,
) -> tuple[list[list[int]], list[np.ndarray]]:
    """What the model reads in place of each sentence's ids, drawn by a generator each, and the places to predict."""
    specials = set(tokenizer.all_special_ids)
    inputs, places = [], []
    for sentence, draw in zip(ids, draws, strict=True):
        words = np.flatnonzero([token not in specials for token in sentence])
        count = min(len(words), max(1, round(options.share * len(words))))
        at = np.sort(draw.choice(words, count, replace=False)) if count else words
        how, other = draw.random(len(at)), draw.integers(len(tokenizer), size=len(at))
        read = np.array(sentence)
        read[at] = np.where(
            how < options.masked,
            tokenizer.mask_token_id,
            np.where(how < options.masked + options.replaced, other, read[at]),
        )
        inputs.append(read.tolist())
        places.append(at)
    return inputs, places


class MaskedTokens(nn.Module):
    """The same cross-entropy beside the loss of another method, over all sentences of a row (SimCSE's code)."""

    def __init__(self, encoder: Encoder, options: MlmOptions) -> None:
        super().__init__()
        refuse_no_mask_token(encoder)
        self.options = options
        self.head, _ = masked_language_head(encoder)

    def forward(self, encoder: Encoder, rows: Sequence[Sequence[str]], draws: Sequence[np.random.Generator]) -> Tensor:
        """(n, 2): for each row the sum over its chosen tokens, and how many they are."""
        owner = np.repeat(np.arange(len(rows)), list(map(len, rows)))
        ids = encoder.tokenize([text for row in rows for text in row])
        inputs, places = corrupted(ids, (draws[int(row)] for row in owner), encoder.tokens.tokenizer, self.options)
        losses = chosen_losses(encoder, self.head, ids, inputs, places)  # (chosen,)
        rows_of = torch.from_numpy(np.repeat(owner, list(map(len, places)))).to(losses.device)
        sums = losses.new_zeros(len(rows)).index_add(0, rows_of, losses)
        return torch.stack([sums, torch.bincount(rows_of, minlength=len(rows)).to(sums)], dim=1)


def chosen_losses(
    encoder: Encoder,
    head: nn.Module,
    ids: Sequence[Sequence[int]],
    inputs: Sequence[Sequence[int]],
    places: Sequence[np.ndarray],
) -> Tensor:
    """The cross-entropy of each chosen token, (chosen,); the head runs on these only."""
    labels = np.concatenate([np.array(sentence)[at] for sentence, at in zip(ids, places, strict=True)])
    states = encoder.token_states(inputs, places)  # (chosen, d)
    logits = head(inputs_embeds=states[None]).logits[0]  # (chosen, vocabulary)
    return F.cross_entropy(logits.float(), torch.from_numpy(labels).to(logits.device), reduction="none")


def refuse_no_mask_token(encoder: Encoder) -> None:
    """Only a masked language model has what is needed."""
    model = encoder.backbone.model
    if encoder.tokens.tokenizer.mask_token_id is None or model.config.is_encoder_decoder:
        problem = f"the base is a {model.config.model_type} model without a mask token"
        raise InputError("mlm", problem, "a masked language model such as BERT", "choose another base or method")


def masked_language_head(encoder: Encoder) -> tuple[nn.Module, bool]:
    """A model's own head, without its body and tied to the encoder's word embeddings; and whether it is new."""
    model = encoder.backbone.model
    try:
        with quiet(), staged(Path(model.config.name_or_path or "no folder")) as stage:
            head = load_weights(AutoModelForMaskedLM, stage)
        fresh = False
    except ModelError:  # the folder has no head or is gone: a model built in memory, or moved
        head, fresh = AutoModelForMaskedLM.from_config(deepcopy(model.config)), True
    setattr(head, head.base_model_prefix, NoBody())
    head.get_output_embeddings().weight = model.get_input_embeddings().weight
    return head, fresh


class NoBody(nn.Module):
    """Replaces a model's body, so that its head reads states that we computed ourselves."""

    def forward(self, *_: object, inputs_embeds: Tensor, **__: object) -> Output:
        """Return the given states as if the body had computed them."""
        return Output(last_hidden_state=inputs_embeds)
