"""Build a model with random weights and a tokenizer trained on given text, without downloads."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import AutoConfig, AutoModel

from sentloom.encoder.loading import quiet
from sentloom.errors import InputError
from sentloom.files import new_folder

BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
T5_SPECIALS = ["<pad>", "</s>", "<unk>"]
FAMILIES = ("bert", "t5", "mt5")
MOST_LETTERS = 1000  # the trainer's own limit for letters at the start of words
DIGITS = 6  # of a log-probability: sums differ in the last bits


@dataclass(frozen=True)
class Size:
    """How large a model is."""

    vocabulary: int = 8000  # tokens, at most
    layers: int = 4
    width: int = 256
    max_length: int = 128  # tokens


@dataclass(frozen=True)
class Form:
    """How texts are normalised and divided before tokens are learned."""

    normalizer: Normalizer | None
    pre_tokenizer: PreTokenizer | None
    specials: Sequence[str] = ()  # tokens that come first

    def untrained(self, model: models.Model) -> Tokenizer:
        """A tokenizer that has learned nothing yet."""
        tokenizer = Tokenizer(model)
        tokenizer.normalizer, tokenizer.pre_tokenizer = self.normalizer, self.pre_tokenizer
        return tokenizer


DEFAULT = Size()


def build_model(folder: Path, family: str, texts: Iterable[str], size: Size = DEFAULT, seed: int = 0) -> None:
    """Write a transformers folder: BERT with a WordPiece tokenizer, or T5 or mT5 with a Unigram tokenizer."""
    if family not in FAMILIES:
        raise InputError("family", f"{family!r} is unknown", f"one of {', '.join(FAMILIES)}", "choose one of these")
    if size.width % 32 or size.layers < 1:
        problem = f"a model with width {size.width} and {size.layers} layers cannot be built"
        raise InputError("size", problem, "a width that is a multiple of 32, and at least one layer", "correct them")
    _refuse_filled(folder)
    tokenizer, facts = (_wordpiece if family == "bert" else _unigram)(list(texts), size.vocabulary)
    torch.manual_seed(seed)
    model = AutoModel.from_config(_config(family, replace(size, vocabulary=tokenizer.get_vocab_size())))
    with new_folder(folder) as part, quiet():
        _refuse_filled(folder)  # another process may have written it meanwhile
        model.save_pretrained(part)
        tokenizer.save(str(part / "tokenizer.json"))
        facts |= {"model_max_length": size.max_length}
        (part / "tokenizer_config.json").write_text(json.dumps(facts, indent=1), "utf-8")


def _refuse_filled(folder: Path) -> None:
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise InputError(str(folder), "it exists and is not an empty folder", "a new name", "choose another name")


def _config(family: str, size: Size) -> Any:
    layers, width = size.layers, size.width
    if family == "bert":
        return AutoConfig.for_model(
            "bert",
            vocab_size=size.vocabulary,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 32,
            intermediate_size=4 * width,
            max_position_embeddings=size.max_length,
            pad_token_id=0,
        )
    gated = {"feed_forward_proj": "gated-gelu", "d_ff": 2 * width} if family == "mt5" else {"d_ff": 4 * width}
    return AutoConfig.for_model(
        family,
        vocab_size=size.vocabulary,
        d_model=width,
        d_kv=32,
        num_heads=width // 32,
        num_layers=layers,
        num_decoder_layers=layers,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        **gated,
    )


def _wordpiece(texts: Sequence[str], vocabulary: int) -> tuple[Tokenizer, dict[str, Any]]:
    normalizer, pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    letters = letters_of(texts, normalizer)
    form = Form(normalizer, pre_tokenizer, BERT_SPECIALS)
    tokens = wordpiece_tokens(texts, vocabulary, form, letters)
    tokenizer = Tokenizer(models.WordPiece({token: at for at, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(BERT_SPECIALS)
    frame = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=frame
    )
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_SPECIALS, strict=True))
    return tokenizer, {"tokenizer_class": "BertTokenizer", **roles}


def _unigram(texts: Sequence[str], vocabulary: int) -> tuple[Tokenizer, dict[str, Any]]:
    normalizer, pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    tokens = unigram_tokens(texts, vocabulary, Form(normalizer, pre_tokenizer, T5_SPECIALS), unknown="<unk>")
    tokenizer = Tokenizer(models.Unigram(tokens, unk_id=T5_SPECIALS.index("<unk>")))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(T5_SPECIALS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>", "extra_ids": 0}
    return tokenizer, {"tokenizer_class": "T5Tokenizer", **roles}


def letters_of(texts: Sequence[str], normalizer: Normalizer | None, most: int = MOST_LETTERS) -> list[str]:
    """The letters of the normalised texts, sorted; at most the `most` most frequent ones."""
    uses = Counter[str]()
    for text in texts:
        uses.update(normalizer.normalize_str(text) if normalizer else text)
    used_most = sorted(uses, key=lambda letter: (-uses[letter], letter))[:most]
    return sorted(letter for letter in used_most if not letter.isspace())


def wordpiece_tokens(
    texts: Sequence[str], size: int, form: Form, letters: Sequence[str], *, prefix: str = "##", min_frequency: int = 0
) -> list[str]:
    """Tokens in the order of their ids. Letters inside words are numbered first, before the trainer does it."""
    tokenizer = form.untrained(models.WordPiece())
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        initial_alphabet=list(letters),
        limit_alphabet=len(letters),
        continuing_subword_prefix=prefix,
        special_tokens=[*form.specials, *(prefix + letter for letter in letters)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def unigram_tokens(texts: Sequence[str], size: int, form: Form, unknown: str | None = None) -> list[tuple[str, float]]:
    """Tokens with their log-probabilities: special tokens first, then the most frequent ones."""
    tokenizer, specials = form.untrained(models.Unigram()), form.specials
    named = {} if unknown is None else {"unk_token": unknown}
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False, **named)
    tokenizer.train_from_iterator(texts, trainer)
    learned: list[tuple[str, float]] = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["vocab"]]
    scores = {token: round(score, DIGITS) for token, score in learned[len(specials) :]}
    return [*learned[: len(specials)], *sorted(_ordered(scores).items(), key=lambda pair: (-pair[1], pair[0]))]


def _ordered(scores: dict[str, float]) -> dict[str, float]:
    """The scores, those of the rarest letters in alphabetical order: the trainer hands them out in a random one."""
    least = min((score for token, score in scores.items() if len(token) > 1), default=0.0)
    rare = sorted(token for token, score in scores.items() if len(token) == 1 and score < least)
    handed_out = sorted((scores[token] for token in rare), reverse=True)
    return scores | dict(zip(rare, handed_out, strict=True))
