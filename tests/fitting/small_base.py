"""A small base and data of a made-up language, in which a few steps teach what held-out rows show.

Every word has a second form. Nothing in its letters tells which, and the base, of random weights, does not know it: it
can only be learned from pairs. The embeddings are scaled down, so that small learning rates move them far.
"""

import random
from itertools import pairwise
from pathlib import Path

import torch

from sentloom.encoder import Encoder
from sentloom.lab.init_model import Size, build_model

FIRST, SECOND = "bdfgk", "lmnprstvz"
WORDS = [f"{a}{vowel}{b}{end}" for a in FIRST for vowel in "aeiou" for b in "lmr" for end in "o"][:60]
FORMS = [f"{a}{vowel}{b}{end}" for a in SECOND for vowel in "aeiou" for b in "kd" for end in "i"][:60]
OTHER = dict(zip(WORDS, FORMS, strict=True))


def sentences(count: int, seed: int, words: int = 5) -> list[str]:
    """Different ones, of different words each."""
    draw = random.Random(seed)
    return list(dict.fromkeys(" ".join(draw.sample(WORDS, words)) for _ in range(2 * count)))[:count]


def other(sentence: str) -> str:
    """The same in the second form, but for the first two words: by those a base finds a partner now and then."""
    words = sentence.split()
    return " ".join([*words[:2], *(OTHER[word] for word in words[2:])])


def build_base(folder: Path) -> Path:
    """A BERT of two layers that knows the words and nothing else."""
    texts = [*sentences(400, 9), *map(other, sentences(400, 9))]
    build_model(folder / "plain", "bert", texts, seed=0, size=Size(vocabulary=300, layers=2, width=32, max_length=32))
    encoder = Encoder.load(str(folder / "plain"), pooling="mean")
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if "word_embeddings" in name:
                parameter.mul_(0.02)
            elif "position" in name or "token_type" in name:
                parameter.zero_()  # else all sentences point one way
    encoder.save(folder / "base")
    return folder / "base"


def write_rows(path: Path, header: str, rows: list[tuple[str, ...]]) -> Path:
    """A TSV file."""
    path.write_text("\n".join(["\t".join(header.split()), *("\t".join(row) for row in rows)]) + "\n", "utf-8")
    return path


def pairs(path: Path, count: int = 500) -> Path:
    """Sentences and their second forms."""
    return write_rows(path, "anchor positive", [(sentence, other(sentence)) for sentence in sentences(count, 1)])


def triplets(path: Path, count: int = 500) -> Path:
    """The same; the negative begins like the positive and has another sentence's end."""
    split_sentences = [sentence.split() for sentence in sentences(count, 2)]
    negatives = [" ".join([*a[:2], *b[2:]]) for a, b in pairwise(split_sentences)]
    anchors = [" ".join(words) for words in split_sentences]
    rows = [(a, other(a), other(b)) for a, b in zip(anchors, negatives, strict=False)]
    return write_rows(path, "anchor positive negative", rows)


def translations(path: Path, count: int = 500) -> Path:
    """The same as source and target."""
    return write_rows(path, "source target", [(sentence, other(sentence)) for sentence in sentences(count, 3)])


def random_words(path: Path, count: int = 400) -> Path:
    """No prose: the halves of a sentence have nothing in common."""
    path.write_text("\n".join(sentences(count, 4, 8)) + "\n", "utf-8")
    return path


def prose(path: Path, count: int = 400) -> Path:
    """Raw text whose sentences say everything twice, so that their halves belong together."""
    path.write_text("\n".join(f"{sentence} {sentence}" for sentence in sentences(count, 7, 4)) + "\n", "utf-8")
    return path
