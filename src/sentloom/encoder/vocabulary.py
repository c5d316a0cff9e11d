"""Another vocabulary for a model: pieces learned on the text it must read, their embeddings made from its own.

Two kinds of tokenizer can be taught: WordPiece (BERT and its kin, the embedded model) and Unigram (T5, XLM-R, ALBERT).
The row of a new piece is the mean of the rows of the old pieces that its letters fall into at the same place: "##haus"
is split as the rest of a word, "haus" (Unigram: "▁haus") as a beginning. What the old vocabulary cannot spell counts as
the mean of all old rows.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, trainers
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.loading import quiet
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, ModelError

WORDPIECE, UNIGRAM = "WordPiece", "Unigram"
RAREST = 5  # a piece that is used less often in the texts would hardly be trained, and might turn up in other languages
RESERVE = 2.0  # nats that a new Unigram piece must be ahead of old ones: text in the old language keeps its tokens
COUNTED = 4096  # texts tokenised together
CONFIGURED = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")  # ids that a config names


def new_vocabulary(encoder: Encoder, texts: Iterable[str], size: int, keep_old: bool = True) -> Encoder:
    """A copy of the encoder whose tokenizer knows pieces learned on the texts, about `size` of them.

    With `keep_old` those that it lacks, and that the texts use at least five times, are added to its own, which keep
    their ids and rows: it still reads what it read, nearly always by the same tokens. Without it they take the place
    of its own, but for special tokens, so that the texts must show every language that it shall read.
    """
    known, shown = _Vocabulary.of(encoder), list(texts)
    if not keep_old and size <= len(known.specials):
        raise InputError("size", str(size), f"more than the {len(known.specials)} special tokens", "raise the size")
    learned = _learn(known, shown, size if keep_old else size - len(known.specials))
    if keep_old:
        scores = {piece: score - RESERVE for piece, score in learned.items()} | known.scores
        pieces = _extended(known, scores, shown)
    else:
        scores = known.scores | learned
        pieces = _in_places(known, _with_letters(known, [one for one in learned if one not in known.specials]))
        _check_places(encoder, known, pieces)
    student = encoder.copy()
    tokenizer = _load_taught(known, pieces, scores)
    student.tokens = Tokens(tokenizer, encoder.tokens.max_length, lower_case=encoder.tokens.lower_case)
    rows = rows_of(pieces, known.ids, known.split, known.unknown, _table(encoder))
    model: Any = student.backbone.model
    model.resize_token_embeddings(len(rows), mean_resizing=False)
    _table(student).copy_(rows)
    return student


def _table(encoder: Encoder) -> Tensor:
    """The rows of the embeddings (at least as many as pieces, d)."""
    model: Any = encoder.backbone.model
    rows: Tensor = model.get_input_embeddings().weight.data
    return rows


def same_tokens(one: Encoder, other: Encoder, texts: Sequence[str]) -> float:
    """The share of texts, at least one, that two encoders cut into the same pieces."""
    pieces = [
        [encoder.tokens.tokenizer.convert_ids_to_tokens(ids) for ids in encoder.tokens.bare(texts)]
        for encoder in (one, other)
    ]
    return sum(left == right for left, right in zip(*pieces, strict=True)) / len(texts)


@dataclass(frozen=True)
class _Vocabulary:
    """The vocabulary that a model has: its pieces by id, and the tokenizer that splits by them."""

    tokenizer: PreTrainedTokenizerBase
    state: Mapping[str, Any]  # tokenizer.json
    pieces: list[str]
    ids: Mapping[str, int]
    specials: list[str]  # and whatever else was added to the tokenizer
    unknown: int

    @classmethod
    def of(cls, encoder: Encoder) -> "_Vocabulary":
        """The encoder's own; a ModelError if it is of a kind that cannot be taught."""
        tokenizer = encoder.tokens.tokenizer
        backend = tokenizer.backend_tokenizer
        state = json.loads(backend.to_str())
        if (kind := state["model"]["type"]) not in (WORDPIECE, UNIGRAM):
            wanted = f"{WORDPIECE} or {UNIGRAM}, which can be taught pieces"
            fix = "start from a model such as BERT, MPNet, T5 or XLM-R"
            raise ModelError("vocabulary", f"a tokenizer of the kind {kind}", wanted, fix)
        ids = backend.get_vocab(with_added_tokens=True)
        pieces = sorted(ids, key=lambda piece: int(ids[piece]))
        rows = len(_table(encoder))
        whole = [ids[piece] for piece in pieces] == list(range(len(ids))) and len(ids) <= rows
        if not whole or tokenizer.unk_token_id is None:
            found = f"{len(ids)} pieces for {rows} rows, with gaps or without an unknown token"
            wanted = "a row for every piece, ids without a gap, and an unknown token"
            raise ModelError("vocabulary", found, wanted, "choose another start model")
        added = [token.content for _, token in sorted(backend.get_added_tokens_decoder().items())]
        specials = list(dict.fromkeys([*added, str(tokenizer.unk_token)]))
        return cls(tokenizer, state, pieces, ids, specials, int(tokenizer.unk_token_id))

    @property
    def is_wordpiece(self) -> bool:
        return bool(self.state["model"]["type"] == WORDPIECE)

    @property
    def prefix(self) -> str:
        """What marks a WordPiece that continues a word; Unigram marks beginnings instead, by a letter of the piece."""
        return str(self.state["model"].get("continuing_subword_prefix", ""))

    def split(self, piece: str) -> list[int]:
        """The ids of the pieces that a new one falls into."""
        if self.is_wordpiece:
            return longest_matches(piece, self.ids, self.prefix) or [self.unknown]
        return [token.id for token in self.tokenizer.backend_tokenizer.model.tokenize(piece)]

    @property
    def scores(self) -> dict[str, float]:
        """Unigram's log-probabilities; WordPiece goes by length alone."""
        return {} if self.is_wordpiece else dict(self.state["model"]["vocab"])

    def taught(self, pieces: Sequence[str], scores: Mapping[str, float]) -> str:
        """tokenizer.json with other pieces."""
        places = {piece: number for number, piece in enumerate(pieces)}
        listed = [[piece, scores.get(piece, 0.0)] for piece in pieces]
        model = {**self.state["model"], "vocab": places if self.is_wordpiece else listed}
        added = [{**token, "id": places[token["content"]]} for token in self.state["added_tokens"]]
        return json.dumps({**self.state, "model": model, "added_tokens": added})


def longest_matches(piece: str, ids: Mapping[str, int], prefix: str) -> list[int]:
    """The ids that WordPiece gives for a piece at its own place in a word; none if it cannot be spelled."""
    found, mark = [], prefix if piece.startswith(prefix) else ""
    rest = piece.removeprefix(prefix)
    while rest:
        end = next((end for end in range(len(rest), 0, -1) if mark + rest[:end] in ids), 0)
        if not end:
            return []
        found.append(ids[mark + rest[:end]])
        rest, mark = rest[end:], prefix
    return found


def rows_of(
    pieces: Sequence[str], ids: Mapping[str, int], split: Callable[[str], list[int]], unknown: int, table: Tensor
) -> Tensor:
    """A row for each piece (pieces, d): its own of `table` if it has one, else the mean of those it falls into.

    Among the latter, the unknown piece counts as the mean of all that the vocabulary `ids` has.
    """
    spelling = table.clone()
    spelling[unknown] = table[: len(ids)].mean(dim=0)
    return torch.stack([table[ids[one]] if one in ids else spelling[split(one)].mean(dim=0) for one in pieces])


def _learn(known: _Vocabulary, texts: list[str], size: int) -> dict[str, float]:
    """Pieces of the texts, normalised and cut to words as before, in the order found; for Unigram with their scores."""
    backend = known.tokenizer.backend_tokenizer
    if known.is_wordpiece:
        tokenizer = Tokenizer(models.WordPiece(unk_token=known.tokenizer.unk_token))
        # The trainer numbers letters inside words by chance, and breaks ties by number: so we number them before.
        letters = sorted({letter for text in texts for letter in _normalized(backend, text)})
        trainer: Any = trainers.WordPieceTrainer(
            vocab_size=size + len(letters),
            min_frequency=2,
            continuing_subword_prefix=known.prefix,
            special_tokens=[known.prefix + letter for letter in letters],
            show_progress=False,
        )
    else:
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False)
    tokenizer.normalizer, tokenizer.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    if isinstance(vocabulary, list):
        return dict(vocabulary)
    return dict.fromkeys(sorted(vocabulary, key=lambda piece: int(vocabulary[piece])), 0.0)


def _normalized(backend: Tokenizer, text: str) -> str:
    return str(backend.normalizer.normalize_str(text)) if backend.normalizer else text


def _extended(known: _Vocabulary, scores: Mapping[str, float], texts: list[str]) -> list[str]:
    """The old pieces, then the learned ones that are often used beside them."""
    candidates = [*known.pieces, *(piece for piece in scores if piece not in known.ids)]
    tokenizer = Tokenizer.from_str(known.taught(candidates, scores))
    uses = np.zeros(len(candidates), np.int64)
    for start in range(0, len(texts), COUNTED):
        encodings = tokenizer.encode_batch_fast(texts[start : start + COUNTED], add_special_tokens=False)
        uses += np.bincount(np.concatenate([one.ids or [known.unknown] for one in encodings]), minlength=len(uses))
    count = len(known.pieces)
    fresh = [piece for piece, used in zip(candidates[count:], uses[count:], strict=True) if used >= RAREST]
    if not fresh:
        found = f"no piece that the model lacks and the texts use {RAREST} times"
        raise InputError("vocabulary", found, "text that falls into many pieces", "keep the model, or give more text")
    return _with_letters(known, [*known.pieces, *fresh])


def _with_letters(known: _Vocabulary, pieces: list[str]) -> list[str]:
    """WordPieces, and every letter that continues a word in one: a long match must leave no rest without a match."""
    if not known.is_wordpiece:
        return pieces
    inner = [one.removeprefix(known.prefix) if one.startswith(known.prefix) else one[1:] for one in pieces]
    letters = {letter for one, rest in zip(pieces, inner, strict=True) if one not in known.specials for letter in rest}
    return list(dict.fromkeys([*pieces, *(known.prefix + letter for letter in sorted(letters))]))


def _in_places(known: _Vocabulary, learned: Sequence[str]) -> list[str]:
    """Learned pieces around the special tokens, which keep their ids where the vocabulary is long enough."""
    places: list[str | None] = [None] * (len(learned) + len(known.specials))
    beyond = []
    for special in known.specials:
        if (at := known.ids[special]) < len(places):
            places[at] = special
        else:
            beyond.append(special)
    rest = iter([*learned, *beyond])
    return [place if place is not None else next(rest) for place in places]


def _check_places(encoder: Encoder, known: _Vocabulary, pieces: Sequence[str]) -> None:
    """Refuse a vocabulary so short that a special token, by whose id the model goes, had to move."""
    config = encoder.backbone.model.config
    named = [getattr(config, name, None) for name in CONFIGURED]
    fixed = {*encoder.tokens.specials.before, *encoder.tokens.specials.behind, known.unknown}
    fixed |= {number for number in named if isinstance(number, int) and 0 <= number < len(known.pieces)}
    moved = [number for number in sorted(fixed) if number >= len(pieces) or pieces[number] != known.pieces[number]]
    if moved:
        found, wanted = f"{len(pieces)} pieces", f"more than {moved[-1]}, the id of {known.pieces[moved[-1]]}"
        raise InputError("size", found, wanted, "raise the size, give more text, or keep the old pieces")


def _load_taught(known: _Vocabulary, pieces: Sequence[str], scores: Mapping[str, float]) -> PreTrainedTokenizerBase:
    """The tokenizer with these pieces, by way of files: what a saved model will load is what is used here."""
    with TemporaryDirectory() as name, quiet():
        known.tokenizer.save_pretrained(name)
        Path(name, "tokenizer.json").write_text(known.taught(pieces, scores), encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if tokenizer.get_vocab() != {piece: number for number, piece in enumerate(pieces)}:
        found = f"a {type(tokenizer).__name__} that does not take other pieces"
        raise ModelError("vocabulary", found, "a tokenizer that its tokenizer.json defines", "choose another model")
    return tokenizer
