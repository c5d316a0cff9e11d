"""Causal models, such as SmolLM2: they read a prompt and continue it, token by token.

The tokens that all rows begin with are read once, rows of similar length are read together, and where heads share keys
and values (Llama and its relatives), attention does not repeat these for each head.
"""

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForCausalLM,
    DynamicCache,
    GenerationConfig,
)
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from sentloom.encoder.loading import TextModel
from sentloom.writing.language_model import Ids, LanguageModel, head_at, padded, refuse_ids
from sentloom.writing.sampling import Draw
from sentloom.writing.writer import Wording, shown_judgements

UNTRAINED_TEMPERATURE = 0.5
READ_TOGETHER = 256  # tokens: more at a time are hardly faster, and rows of different lengths need padding
GROUPED = "sentloom_grouped"  # the name of `grouped_attention` in transformers' registry


class Prefix(NamedTuple):
    """The tokens that all rows begin with, and their keys and values (1, heads, tokens, width) in each layer."""

    length: int
    cache: DynamicCache

    def repeated(self, rows: int) -> DynamicCache:
        """A cache that `rows` rows which begin with these tokens can add to."""
        layers: list[Any] = self.cache.layers
        return DynamicCache(
            [(layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1)) for layer in layers]
        )


class Causal(LanguageModel):
    """A text ends with the end token or with its line, as prompts show one text per line."""

    AUTO = AutoModelForCausalLM
    WANTED = "a causal model, such as SmolLM2"
    BATCH = 16  # the keys and values of a long prompt take memory
    GROUP = 16  # source and target are one row, so lengths differ more
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
        self.takes = set(inspect.signature(self.model.forward).parameters)
        if config._attn_implementation == "sdpa":
            self.model.set_attn_implementation(GROUPED)

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
        return Prefix(len(ids), cache) if cache and plain and "position_ids" in self.takes else None

    def decode(self, rows: Sequence[Ids], longest: int, draw: Draw | None, prefix: Prefix | None = None) -> list[Ids]:
        """Token by token; texts that have ended leave the batch."""
        written: list[Ids] = [[] for _ in rows]
        live = torch.arange(len(rows))
        state = _read(self, rows, prefix, longest)
        for position in range(longest):
            scores = draw.noisy(state.scores, position, live.numpy()) if draw else state.scores
            chosen = scores.argmax(dim=1)
            for row, token in zip(live.tolist(), chosen.tolist(), strict=True):
                written[row].append(token)
            going = torch.tensor([token not in self.stops for token in chosen.tolist()])
            if position == longest - 1 or not going.any():
                break
            state.append(chosen, going)
            live = live[going]
        return written

    def target_logits(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Tensor:
        """Source and target in one row; the logits of a token are at the place before it."""
        rows = [[*source, *target[:-1]] for source, target in zip(sources, targets, strict=True)]
        ids, read = padded(rows, self)
        starts = torch.tensor([len(source) - 1 for source in sources], device=ids.device)[:, None]
        places = read & (torch.arange(ids.shape[1], device=ids.device) >= starts)
        with head_at(self, places):
            logits: Tensor = self.model(input_ids=ids, attention_mask=read.long(), use_cache=False).logits
        return logits

    def first_logits(self, sources: Sequence[Ids], prefix: Prefix | None = None) -> Tensor:
        """What comes after the source."""
        return torch.cat([_Reading.of(self, group, prefix).scores for group in _groups(sources, prefix)])


def _read(model: Causal, rows: Sequence[Ids], prefix: Prefix | None, room: int) -> "_Reading":
    """All rows as one batch, with room for `room` more tokens. Rows of similar length are read together."""
    parts = [_Reading.of(model, group, prefix) for group in _groups(rows, prefix)]
    return _joined(model, parts, prefix.length, room) if prefix else parts[0]


def _groups(rows: Sequence[Ids], prefix: Prefix | None) -> list[list[Ids]]:
    """Neighbouring rows with few tokens after the prefix; all rows if their caches could not be joined."""
    if prefix is None:
        return [list(rows)]
    groups = [[rows[0]]]
    for row in rows[1:]:
        longest = max(map(len, [*groups[-1], row])) - prefix.length
        if longest * (len(groups[-1]) + 1) <= READ_TOGETHER:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


class _Reading:
    """Rows that a model has read, what it has computed of them, and the logits (n, V) of what comes next.

    Padding comes first, or after the prefix.
    """

    def __init__(self, model: Causal, mask: Tensor, positions: Tensor, cache: DynamicCache, scores: Tensor) -> None:
        """`mask` (n, length) is 0 for padding; `positions` (n, 1) are those of the last tokens."""
        self._model, self.mask, self.positions, self.cache, self.scores = model, mask, positions, cache, scores

    @classmethod
    def of(cls, model: Causal, rows: Sequence[Ids], prefix: Prefix | None) -> Self:
        """Read rows that begin with the prefix."""
        start = prefix.length if prefix else 0
        ids, read = padded([row[start:] for row in rows], model, left=True)
        mask = torch.cat([read.new_ones(len(rows), start), read], dim=1).long()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, start:]
        cache = prefix.repeated(len(rows)) if prefix else DynamicCache(config=model.model.config)
        return cls(model, mask, positions[:, -1:], cache, _last_scores(model, ids, mask, positions, cache))

    def append(self, tokens: Tensor, going: Tensor) -> None:
        """Add a token (n,) to each row, and leave out the rows that have ended."""
        keep = going.to(tokens.device)
        if not going.all():
            self.cache.batch_select_indices(keep.nonzero()[:, 0])
        self.mask = torch.cat([self.mask[keep], self.mask.new_ones(int(keep.sum()), 1)], dim=1)
        self.positions = self.positions[keep] + 1
        self.scores = _last_scores(self._model, tokens[keep, None], self.mask, self.positions, self.cache)


def _last_scores(model: Causal, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
    """The logits (n, V) after the last of these tokens (n, length), whose keys and values are added to the cache."""
    options = {"position_ids": positions, "logits_to_keep": 1}
    known = {name: value for name, value in options.items() if name in model.takes}
    run = model.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **known)
    last: Tensor = run.logits[:, -1]
    return last.float()


def _joined(model: Causal, parts: Sequence[_Reading], start: int, room: int) -> _Reading:
    """Several readings as one: shorter rows get more padding after the prefix of `start` tokens."""
    longest = max(part.mask.shape[1] for part in parts)
    cache = DynamicCache()
    while parts[0].cache.layers:
        layers: list[Any] = [part.cache.layers.pop(0) for part in parts]  # which frees their memory
        keys = _stacked([layer.keys for layer in layers], start, longest, room)
        values = _stacked([layer.values for layer in layers], start, longest, room)
        cache.layers.append(_RoomyLayer(keys, values, longest))
    mask = _stacked([part.mask[:, None, :, None] for part in parts], start, longest)[:, 0, :, 0]
    positions = torch.cat([part.positions for part in parts])
    return _Reading(model, mask, positions, cache, torch.cat([part.scores for part in parts]))


def _stacked(parts: Sequence[Tensor], start: int, longest: int, room: int = 0) -> Tensor:
    """Parts (rows, heads, places, width) as one (n, heads, longest + room, width).

    The first `start` places stay, and the others move to the right.
    """
    _, heads, _, width = parts[0].shape
    stacked = parts[0].new_zeros(sum(map(len, parts)), heads, longest + room, width)
    for rows, part in zip(stacked.split([len(part) for part in parts]), parts, strict=True):
        own = part.shape[2] - start
        rows[:, :, :start] = part[:, :, :start]
        rows[:, :, longest - own : longest] = part[:, :, start:]
    return stacked


class _RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values (n, heads, places, width) with free places: adding a token does not copy the others."""

    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor, length: int) -> None:
        super().__init__()
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self._places = keys, values
        self._use(length)

    def _use(self, length: int) -> None:
        self.keys, self.values = (states[:, :, :length] for states in self._places)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write new states into the next places."""
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        for places, states in zip(self._places, (key_states, value_states), strict=True):
            places[:, :, start:end] = states
        self._use(end)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some rows."""
        keys, values = self._places
        self._places = keys[indices], values[indices]
        self._use(self.keys.shape[2])


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
    attended = F.scaled_dot_product_attention(together, key, value, attn_mask=mask, scale=scaling)
    return attended.reshape(rows, heads, length, width).transpose(1, 2), None


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
