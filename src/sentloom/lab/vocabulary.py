"""Give a model a new vocabulary: tokens learned on given text, with embeddings computed from its own.

Two types of tokenizer are supported: WordPiece (BERT-like models, the embedded model) and Unigram (T5, XLM-R, ALBERT).
The embedding of a new token is the mean of the embeddings of the old tokens that it splits into at the same position:
"##haus" is split as the rest of a word, "haus" (Unigram: "▁haus") as its beginning. What the old vocabulary cannot
spell counts as the mean of all old embeddings.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.loading import quiet
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, ModelError
from sentloom.lab.init_model import Form, letters_of, unigram_tokens, wordpiece_tokens

WORDPIECE, UNIGRAM = "WordPiece", "Unigram"
RAREST = 5  # a rarer token would hardly be trained, and might appear in other languages
RESERVE = 2.0  # nats subtracted from new Unigram tokens, so that text in the old language keeps its tokens
COUNTED = 4096  # texts tokenised together
CONFIGURED = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")  # ids that a config names


def new_vocabulary(encoder: Encoder, texts: Iterable[str], size: int, keep_old: bool = True) -> Encoder:
    """Return a copy of the encoder whose tokenizer has about `size` tokens learned on the texts.

    With `keep_old`, learned tokens that it lacks and the texts use at least five times are added to the old ones, which
    keep their ids and embeddings: old text is tokenised nearly always as before. Without it, they replace all old
    tokens except the special ones, so the texts must cover every language that the model should support.
    """
    known, shown = _Vocabulary.of(encoder), list(texts)
    if not keep_old and size <= len(known.specials):
        problem, expected = f"{size} is too small", f"more than the {len(known.specials)} special tokens"
        raise InputError("size", problem, expected, "raise the size")
    learned = _learn(known, shown, size if keep_old else size - len(known.specials))
    if keep_old:
        scores = {token: score - RESERVE for token, score in learned.items()} | known.scores
        tokens = _extended(known, scores, shown)
    else:
        scores = known.scores | learned
        plain = [token for token in learned if token not in known.specials]
        tokens = _around_specials(known, _with_letters(known, plain))
        _check_places(encoder, known, tokens)
    student = encoder.copy()
    tokenizer = _load_with_tokens(known, tokens, scores)
    student.tokens = Tokens(tokenizer, encoder.tokens.max_length, lower_case=encoder.tokens.lower_case)
    rows = rows_of(tokens, known.ids, known.split, known.unknown, _table(encoder))
    model: Any = student.backbone.model
    model.resize_token_embeddings(len(rows), mean_resizing=False)
    _table(student).copy_(rows)
    return student


def _table(encoder: Encoder) -> Tensor:
    """Return the embeddings (at least one row per token, d)."""
    model: Any = encoder.backbone.model
    rows: Tensor = model.get_input_embeddings().weight.data
    return rows


def same_tokens(first: Encoder, second: Encoder, texts: Sequence[str]) -> float:
    """Return the share of texts (at least one text) that two encoders split into the same tokens."""
    tokens = [
        [encoder.tokens.tokenizer.convert_ids_to_tokens(ids) for ids in encoder.tokens.bare(texts)]
        for encoder in (first, second)
    ]
    return sum(left == right for left, right in zip(*tokens, strict=True)) / len(texts)


@dataclass(frozen=True)
class _Vocabulary:
    """A model's vocabulary: its tokens by id, and the tokenizer."""

    tokenizer: PreTrainedTokenizerBase
    state: Mapping[str, Any]  # tokenizer.json
    tokens: list[str]
    ids: Mapping[str, int]
    specials: list[str]  # and other tokens added to the tokenizer
    unknown: int

    @classmethod
    def of(cls, encoder: Encoder) -> "_Vocabulary":
        """Read an encoder's vocabulary; raise a ModelError if the tokenizer is of an unsupported type."""
        tokenizer = encoder.tokens.tokenizer
        backend = tokenizer.backend_tokenizer
        state = json.loads(backend.to_str())
        if (kind := state["model"]["type"]) not in (WORDPIECE, UNIGRAM):
            problem = f"tokens cannot be added to a tokenizer of the type {kind}"
            fix = "start from a model such as BERT, MPNet, T5 or XLM-R"
            raise ModelError("vocabulary", problem, f"{WORDPIECE} or {UNIGRAM}", fix)
        ids = backend.get_vocab(with_added_tokens=True)
        tokens = sorted(ids, key=lambda token: int(ids[token]))
        rows = len(_table(encoder))
        whole = [ids[token] for token in tokens] == list(range(len(ids))) and len(ids) <= rows
        if not whole or tokenizer.unk_token_id is None:
            problem = f"the model has {len(ids)} tokens and {rows} embeddings, gaps in the ids or no unknown token"
            expected = "an embedding for every token, ids without gaps, and an unknown token"
            raise ModelError("vocabulary", problem, expected, "choose another base model")
        added = [token.content for _, token in sorted(backend.get_added_tokens_decoder().items())]
        specials = list(dict.fromkeys([*added, str(tokenizer.unk_token)]))
        return cls(tokenizer, state, tokens, ids, specials, int(tokenizer.unk_token_id))

    @property
    def is_wordpiece(self) -> bool:
        return bool(self.state["model"]["type"] == WORDPIECE)

    @property
    def prefix(self) -> str:
        """The prefix of a WordPiece token that continues a word; Unigram marks the beginnings of words instead."""
        return str(self.state["model"].get("continuing_subword_prefix", ""))

    def split(self, token: str) -> list[int]:
        """Return the ids of the old tokens that a new one splits into."""
        if self.is_wordpiece:
            return longest_matches(token, self.ids, self.prefix) or [self.unknown]
        return [part.id for part in self.tokenizer.backend_tokenizer.model.tokenize(token)]

    @property
    def scores(self) -> dict[str, float]:
        """Unigram's log-probabilities; WordPiece has none, it takes the longest match."""
        return {} if self.is_wordpiece else dict(self.state["model"]["vocab"])

    def with_tokens(self, tokens: Sequence[str], scores: Mapping[str, float]) -> str:
        """Return tokenizer.json with other tokens."""
        places = {token: number for number, token in enumerate(tokens)}
        listed = [[token, scores.get(token, 0.0)] for token in tokens]
        model = {**self.state["model"], "vocab": places if self.is_wordpiece else listed}
        added = [{**token, "id": places[token["content"]]} for token in self.state["added_tokens"]]
        return json.dumps({**self.state, "model": model, "added_tokens": added})


def longest_matches(token: str, ids: Mapping[str, int], prefix: str) -> list[int]:
    """Return the ids that WordPiece splits a token into at its position in a word; empty if it cannot be spelled."""
    parts, mark = [], prefix if token.startswith(prefix) else ""
    rest = token.removeprefix(prefix)
    while rest:
        end = next((end for end in range(len(rest), 0, -1) if mark + rest[:end] in ids), 0)
        if not end:
            return []
        parts.append(ids[mark + rest[:end]])
        rest, mark = rest[end:], prefix
    return parts


def rows_of(
    tokens: Sequence[str], ids: Mapping[str, int], split: Callable[[str], list[int]], unknown: int, table: Tensor
) -> Tensor:
    """Return embeddings (tokens, d): a token's own row of `table`, else the mean of the rows it splits into.

    In that mean, the unknown token counts as the mean of all rows of the vocabulary `ids`.
    """
    spelling = table.clone()
    spelling[unknown] = table[: len(ids)].mean(dim=0)
    return torch.stack([table[ids[token]] if token in ids else spelling[split(token)].mean(dim=0) for token in tokens])


def _learn(known: _Vocabulary, texts: list[str], size: int) -> dict[str, float]:
    """Learn tokens from texts, normalised and pre-tokenised as before, in order of ids; for Unigram with scores."""
    backend = known.tokenizer.backend_tokenizer
    form = Form(backend.normalizer, backend.pre_tokenizer)
    if not known.is_wordpiece:
        return dict(unigram_tokens(texts, size, form))
    letters = letters_of(texts, backend.normalizer)
    tokens = wordpiece_tokens(texts, size + len(letters), form, letters, prefix=known.prefix, min_frequency=2)
    return dict.fromkeys(tokens, 0.0)


def _extended(known: _Vocabulary, scores: Mapping[str, float], texts: list[str]) -> list[str]:
    """List the old tokens, then the learned ones that the texts use often enough."""
    candidates = [*known.tokens, *(token for token in scores if token not in known.ids)]
    tokenizer = Tokenizer.from_str(known.with_tokens(candidates, scores))
    uses = np.zeros(len(candidates), np.int64)
    for start in range(0, len(texts), COUNTED):
        encodings = tokenizer.encode_batch_fast(texts[start : start + COUNTED], add_special_tokens=False)
        ids = np.concatenate([encoding.ids or [known.unknown] for encoding in encodings])
        uses += np.bincount(ids, minlength=len(uses))
    count = len(known.tokens)
    fresh = [token for token, used in zip(candidates[count:], uses[count:], strict=True) if used >= RAREST]
    if not fresh:
        problem = f"the texts have no token that the model lacks and that is used {RAREST} times"
        expected = "text that the model splits into many tokens"
        raise InputError("vocabulary", problem, expected, "keep the model, or give more text")
    return _with_letters(known, [*known.tokens, *fresh])


def _with_letters(known: _Vocabulary, tokens: list[str]) -> list[str]:
    """Add every letter that continues a word in a WordPiece token, so that the rest of a longest match can match."""
    if not known.is_wordpiece:
        return tokens
    plain = [token for token in tokens if token not in known.specials]
    inner = [token.removeprefix(known.prefix) if token.startswith(known.prefix) else token[1:] for token in plain]
    letters = sorted({letter for rest in inner for letter in rest})
    return list(dict.fromkeys([*tokens, *(known.prefix + letter for letter in letters)]))


def _around_specials(known: _Vocabulary, learned: Sequence[str]) -> list[str]:
    """Arrange learned tokens around the special tokens, which keep their ids if the vocabulary is large enough."""
    places: list[str | None] = [None] * (len(learned) + len(known.specials))
    beyond = []
    for special in known.specials:
        if (at := known.ids[special]) < len(places):
            places[at] = special
        else:
            beyond.append(special)
    rest = iter([*learned, *beyond])
    return [place if place is not None else next(rest) for place in places]


def _check_places(encoder: Encoder, known: _Vocabulary, tokens: Sequence[str]) -> None:
    """Refuse a vocabulary so small that a special token whose id the model uses had to move."""
    config = encoder.backbone.model.config
    named = [getattr(config, name, None) for name in CONFIGURED]
    fixed = {*encoder.tokens.specials.before, *encoder.tokens.specials.after, known.unknown}
    fixed |= {number for number in named if isinstance(number, int) and 0 <= number < len(known.tokens)}
    moved = [number for number in sorted(fixed) if number >= len(tokens) or tokens[number] != known.tokens[number]]
    if moved:
        problem = f"a vocabulary of {len(tokens)} tokens is too small"
        expected = f"more than {moved[-1]}, the id of {known.tokens[moved[-1]]}"
        raise InputError("size", problem, expected, "raise the size, give more text, or keep the old tokens")


def _load_with_tokens(
    known: _Vocabulary, tokens: Sequence[str], scores: Mapping[str, float]
) -> PreTrainedTokenizerBase:
    """Load the tokenizer with these tokens from files, so that it is the one that a saved model will load."""
    with TemporaryDirectory() as name, quiet():
        known.tokenizer.save_pretrained(name)
        Path(name, "tokenizer.json").write_text(known.with_tokens(tokens, scores), encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if tokenizer.get_vocab() != {token: number for number, token in enumerate(tokens)}:
        problem = f"the vocabulary of {type(tokenizer).__name__} cannot be replaced"
        expected = "a tokenizer that is defined by its tokenizer.json"
        raise ModelError("vocabulary", problem, expected, "choose another model")
    return tokenizer
