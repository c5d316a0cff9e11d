"""Train the vocabulary of a tokenizer so that every process gets the same one.

The trainers of `tokenizers` walk through hash maps in an order that differs from process to process. WordPiece numbers
the letters inside words in that order and breaks ties by number, so two runs give different tokens; Unigram gives equal
tokens in another order, and its rare letters swap their scores.
"""

import json
from collections import Counter
from collections.abc import Sequence

from tokenizers import Tokenizer, models, trainers
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

MOST_LETTERS = 1000  # the trainer's own limit for letters at the start of words
DIGITS = 6  # of a log-probability: sums differ in the last bits


def letters_of(texts: Sequence[str], normalizer: Normalizer | None, most: int = MOST_LETTERS) -> list[str]:
    """The letters of the normalised texts, sorted; at most the MOST_LETTERS most frequent ones."""
    uses = Counter[str]()
    for text in texts:
        uses.update(normalizer.normalize_str(text) if normalizer else text)
    used_most = sorted(uses, key=lambda letter: (-uses[letter], letter))[:most]
    return sorted(letter for letter in used_most if not letter.isspace())


def wordpiece_tokens(
    texts: Sequence[str],
    size: int,
    *,
    letters: Sequence[str],
    normalizer: Normalizer | None,
    pre_tokenizer: PreTokenizer | None,
    specials: Sequence[str] = (),
    prefix: str = "##",
    min_frequency: int = 0,
) -> list[str]:
    """Tokens in the order of their ids. Letters inside words are numbered first, before the trainer does it."""
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        initial_alphabet=list(letters),
        limit_alphabet=len(letters),
        continuing_subword_prefix=prefix,
        special_tokens=[*specials, *(prefix + letter for letter in letters)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def unigram_tokens(
    texts: Sequence[str],
    size: int,
    *,
    normalizer: Normalizer | None,
    pre_tokenizer: PreTokenizer | None,
    specials: Sequence[str] = (),
    unknown: str | None = None,
) -> list[tuple[str, float]]:
    """Tokens with their log-probabilities: special tokens first, then the most frequent ones."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    given = {} if unknown is None else {"unk_token": unknown}
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False, **given)
    tokenizer.train_from_iterator(texts, trainer)
    found: list[tuple[str, float]] = [tuple(one) for one in json.loads(tokenizer.to_str())["model"]["vocab"]]
    scores = {token: round(score, DIGITS) for token, score in found[len(specials) :]}
    return [*found[: len(specials)], *sorted(_ordered(scores).items(), key=lambda one: (-one[1], one[0]))]


def _ordered(scores: dict[str, float]) -> dict[str, float]:
    """The scores, those of the rarest letters in alphabetical order: the trainer hands them out in a random one."""
    least = min((score for token, score in scores.items() if len(token) > 1), default=0.0)
    rare = sorted(token for token, score in scores.items() if len(token) == 1 and score < least)
    handed_out = sorted((scores[token] for token in rare), reverse=True)
    return scores | dict(zip(rare, handed_out, strict=True))
