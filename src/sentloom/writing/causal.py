"""Causal models, such as SmolLM2: they continue a prompt. What all rows begin with is computed once."""

import copy
import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer

from sentloom.encoder.text_models import TextModel
from sentloom.writing.language_model import Ids, LanguageModel, padded, refuse_ids
from sentloom.writing.prompts import Wording, shown_judgements
from sentloom.writing.sampling import Draw
from sentloom.writing.text_to_text import head_at

UNTRAINED_TEMPERATURE = 0.5


class Prefix(NamedTuple):
    """The tokens that all rows begin with, and their keys and values (1, heads, tokens, width) in each layer."""

    length: int
    cache: DynamicCache


class Causal(LanguageModel):
    """A text ends with the end token or with its line, as prompts show one text per line."""

    AUTO = AutoModelForCausalLM
    WANTED = "a causal model, such as SmolLM2"
    BATCH = 16  # the keys and values of a long prompt take memory
    LEAD = " "
    SOURCE_LENGTH, TARGET_LENGTH = 256, 64

    @staticmethod
    def untrained_wording() -> Wording:
        """With examples: no causal model was pretrained on GenSE's prompts."""
        return shown_judgements()

    @classmethod
    def check_ids(cls, loaded: TextModel) -> None:
        """Many causal models have no padding token; it is masked, so that any other does as well."""
        config = loaded.model.config
        if config.pad_token_id is None:
            config.pad_token_id = config.eos_token_id
        refuse_ids(loaded, "eos_token_id", "pad_token_id")

    def prepare(self) -> None:
        """Ignore the checkpoint's own decoding settings."""
        config = self.model.config
        self.model.generation_config = GenerationConfig(
            pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id
        )
        self._takes = set(inspect.signature(self.model.forward).parameters)

    def sentences(self, texts: Sequence[str]) -> list[Ids]:
        """On one line, as the prompts show them."""
        return self.bare([" ".join(text.split()) for text in texts])

    def framed(self, prompt: Sequence[Ids], sentences: Sequence[Ids]) -> Ids:
        """Nothing comes after the prompt: the model continues it."""
        whole = super().framed(prompt, sentences)
        return whole[: len(whole) - len(self._behind)]

    @property
    def temperature(self) -> float:
        """Without training, samples at 1 soon leave the subject of the text (docs/synthesis.md)."""
        return 1.0 if self.learned else UNTRAINED_TEMPERATURE

    @cached_property
    def stops(self) -> frozenset[int]:
        """The end token, and all tokens with a line break in them."""
        texts = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        return frozenset([self.end, *(i for i, text in enumerate(texts) if "\n" in text)])

    def text_of(self, ids: Sequence[int]) -> str:
        """The first line."""
        text = str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
        return " ".join(text.partition("\n")[0].split())

    @torch.inference_mode()
    def prefix(self, ids: Ids) -> Prefix | None:
        """Keys and values of the tokens, unless the model keeps them in another form, such as a sliding window."""
        run = self.model(input_ids=torch.tensor([ids], device=self.model.device), use_cache=True) if ids else None
        cache = run and run.past_key_values
        plain = isinstance(cache, DynamicCache) and all(type(layer) is DynamicLayer for layer in cache.layers)
        return Prefix(len(ids), cache) if cache and plain and "position_ids" in self._takes else None

    def decode(self, rows: Sequence[Ids], longest: int, draw: Draw | None, prefix: Prefix | None = None) -> list[Ids]:
        """Token by token; texts that have ended leave the batch."""
        written: list[Ids] = [[] for _ in rows]
        live = torch.arange(len(rows))
        state = _Reading(self, rows, prefix)
        for position in range(longest):
            scores = state.next_scores()
            if draw:
                scores = draw.noisy(scores, position, live.numpy())
            chosen = scores.argmax(dim=1)
            for row, token in zip(live.tolist(), chosen.tolist(), strict=True):
                written[row].append(token)
            going = torch.tensor([token not in self.stops for token in chosen.tolist()])
            if not going.any():
                break
            state.append(chosen, going)
            live = live[going]
        return written

    def target_logits(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Tensor:
        """Source and target in one row; the logits of a token are at the place before it."""
        rows = [[*source, *target[:-1]] for source, target in zip(sources, targets, strict=True)]
        ids, read = padded(rows, self)
        starts = torch.tensor([len(source) - 1 for source in sources], device=ids.device)[:, None]
        wanted = read & (torch.arange(ids.shape[1], device=ids.device) >= starts)
        with head_at(self, wanted):
            logits: Tensor = self.model(input_ids=ids, attention_mask=read.long(), use_cache=False).logits
        return logits

    def first_logits(self, sources: Sequence[Ids], prefix: Prefix | None = None) -> Tensor:
        """What comes after the source."""
        return _Reading(self, sources, prefix).next_scores()


class _Reading:
    """Rows that a model is reading, with what it has computed of them. Padding comes first, or after the prefix."""

    def __init__(self, model: Causal, rows: Sequence[Ids], prefix: Prefix | None) -> None:
        start = prefix.length if prefix else 0
        self._model = model
        self._ids, read = padded([row[start:] for row in rows], model, left=True)
        self._mask = torch.cat([read.new_ones(len(rows), start), read], dim=1).long()
        self._positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)[:, start:]
        self._cache = copy.deepcopy(prefix.cache) if prefix else DynamicCache(config=model.model.config)
        if prefix:
            self._cache.batch_repeat_interleave(len(rows))

    def next_scores(self) -> Tensor:
        """The logits (n, V) after the last token of each row."""
        given = {"position_ids": self._positions, "logits_to_keep": 1}
        run = self._model.model(
            input_ids=self._ids,
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            **{name: value for name, value in given.items() if name in self._model._takes},
        )
        last: Tensor = run.logits[:, -1]
        return last

    def append(self, tokens: Tensor, going: Tensor) -> None:
        """Add a token (n,) to each row, and leave out the rows that have ended."""
        if not going.all():
            self._cache.batch_select_indices(going.nonzero()[:, 0].to(tokens.device))
        keep = going.to(tokens.device)
        self._ids = tokens[keep, None]
        self._mask = torch.cat([self._mask[keep], self._mask.new_ones(len(self._ids), 1)], dim=1)
        self._positions = self._positions[keep, -1:] + 1
