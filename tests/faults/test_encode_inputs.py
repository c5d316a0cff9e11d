"""Whatever the text, and whatever it is encoded together with: a finite vector of the right form, always the same.

A case is one call of `encode`: some texts, old ones and new ones, in some order, container and grouping. Every vector
is compared with the one that the same text gets when it is encoded alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.encoder import Vectors
from sentloom.errors import InputError
from tests.encoder.small_models import FAMILIES, SENTENCES, SPECIALS, build_model_folder
from tests.faults.conftest import Tally

FAULT = "6. odd texts and batches in encode"
ASKED = 10_000

QUICK, LONG = 4, 960  # calls for every family
FAR = 1e-5  # the greatest distance, 1 - cosine, between a text alone and in company
ROLES = ("symmetric", "query", "document")
SCRIPTS = {  # a range of code points of each
    "Arabic": (0x600, 0x6FF), "Hebrew": (0x591, 0x5F4), "Devanagari": (0x900, 0x97F), "Thai": (0xE01, 0xE5B),
    "Tibetan": (0xF00, 0xFDA), "Han": (0x4E00, 0x9FFF), "Hangul": (0xAC00, 0xD7A3), "Cyrillic": (0x400, 0x4FF),
    "Greek": (0x370, 0x3FF), "Ethiopic": (0x1200, 0x137C), "Gothic": (0x10330, 0x1034A), "private": (0xE000, 0xF8FF),
    "noncharacters": (0xFDD0, 0xFDEF), "tags": (0xE0020, 0xE007F), "C0": (0, 0x1F), "C1": (0x7F, 0x9F),
}  # fmt: skip
SPACES = " \t\n\r\v\f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000"
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\u00ad\u2060"
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🇵🇹", "👍🏽", "❤️", "1️⃣", "🏴\U000e0067\U000e0062\U000e007f", "☠"]
SPECIAL_TOKENS = sorted({token for tokens in SPECIALS.values() for token in tokens})


def draw(random: np.random.Generator, characters: str | list[str], most: int = 40) -> str:
    return "".join(random.choice(list(characters), random.integers(1, most)))


def span(random: np.random.Generator, first: int, last: int) -> str:
    return "".join(map(chr, random.integers(first, last + 1, random.integers(1, 60))))


def script(random: np.random.Generator) -> str:
    return span(random, *SCRIPTS[random.choice(list(SCRIPTS))])


def any_character(random: np.random.Generator) -> str:
    return "".join(c for c in span(random, 0, 0x10FFFF) if not 0xD800 <= ord(c) < 0xE000)


def words(random: np.random.Generator) -> str:
    return " ".join(random.choice(" ".join(SENTENCES).split(), random.integers(1, 30)))


def marks(random: np.random.Generator) -> str:
    return draw(random, "aeoüñ", 8) + span(random, 0x300, 0x36F) + draw(random, "aeo", 3)


KINDS: tuple[Callable[[np.random.Generator], str], ...] = (
    lambda random: "",
    lambda random: draw(random, SPACES),
    lambda random: draw(random, INVISIBLE + "a "),
    lambda random: draw(random, EMOJI),
    lambda random: " ".join(random.choice(SPECIAL_TOKENS, random.integers(1, 20))),
    lambda random: "\0" * int(random.integers(1, 5)) + words(random),
    lambda random: draw(random, "x", 300),
    lambda random: " ".join(words(random) for _ in range(random.integers(2, 30))),  # beyond what most models read
    words,
    marks,
    script,
    any_character,
)


def new_text(random: np.random.Generator) -> str:
    return KINDS[random.integers(len(KINDS))](random)


@pytest.fixture(autouse=True)
def _threads_as_before() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Encoder]:
    root = tmp_path_factory.mktemp("models")
    return lambda family: Encoder.load(build_model_folder(family, root / family), max_length=64)


class Alone:
    """An encoder, and the vectors of texts that it was given one at a time."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.vectors: dict[tuple[str, str], Vectors] = {}

    def __call__(self, text: str, role: Any) -> Vectors:
        if (text, role) not in self.vectors:
            self.vectors[text, role] = self.encoder.encode([text], role=role)[0]
        return self.vectors[text, role]


def variants(base: Encoder) -> list[Alone]:
    """The encoder with each pooling, with and without unit length and prompts."""
    prompts = {"symmetric": Prompt("dogs: "), "query": Prompt("man ", " knows?"), "document": Prompt(suffix=" snow")}
    parts = base.backbone, base.tokens
    made = [
        base,
        Encoder(*parts, pooling=base.pooling.parse("first"), unit_length=True),
        Encoder(*parts, pooling=base.pooling.parse("max@0,-1"), unit_length=False),
        Encoder(*parts, pooling=base.pooling, unit_length=True, prompts=prompts),
    ]
    return [Alone(encoder.eval()) for encoder in made]


def contained(texts: list[str], random: np.random.Generator) -> Any:
    """The same texts in one of the forms that `encode` takes."""
    cut = int(random.integers(len(texts) + 1))
    arrow = pa.array(texts, pa.string())
    return (
        texts,
        tuple(texts),
        iter(texts),
        np.array(texts, dtype=object),
        pa.chunked_array([arrow[:cut], arrow[cut:]]),
    )[random.integers(5)]


def check(encoder: Encoder, texts: list[str], vectors: Any, alone: list[Vectors]) -> None:
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), encoder.dimension)
    assert np.isfinite(vectors).all()
    if not texts:
        return
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert not encoder.unit_length or np.abs(lengths - 1).max() < 1e-5
    expected = np.stack(alone).astype(np.float64)
    cosines = (vectors * expected).sum(axis=1) / lengths / np.linalg.norm(expected, axis=1)
    assert (1 - cosines).max() < FAR, repr(texts[int(cosines.argmin())])
    for text in set(texts):
        same = vectors[[one == text for one in texts]]
        assert (same == same[0]).all(), repr(text)


def one_call(encoders: list[Alone], pool: list[str], random: np.random.Generator, most: int) -> None:
    """One case: draw texts, an encoder, a role and a grouping; encode; compare."""
    alone = encoders[random.integers(len(encoders))]
    role: Any = ROLES[random.integers(3)]
    texts = [*random.choice(pool, random.integers(most)), *(new_text(random) for _ in range(random.integers(3)))]
    texts = [str(texts[place]) for place in random.permutation(len(texts))]
    expected = [alone(text, role) for text in texts]
    torch.set_num_threads(int(random.integers(1, 4)))
    encoder = alone.encoder.copy()
    encoder.window = int(random.choice([1, 3, 16, 4096]))
    encoder.tokens_per_pack = int(random.choice([1, 64, 300, 2048]))
    vectors = encoder.encode(contained(texts, random), role=role)
    check(alone.encoder, texts, vectors, expected)


def check_many_calls(encoder: Encoder, seed: list[int], calls: int, tally: Tally, most: int = 12) -> None:
    random = np.random.default_rng(seed)
    encoders, pool = variants(encoder), [kind(random) for _ in range(4) for kind in KINDS]
    for number in range(calls):
        with tally.case(f"call {number} of seed {seed}"):
            one_call(encoders, pool, random, most)


@pytest.mark.parametrize("calls", [QUICK, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_texts_in_any_company(family: str, calls: int, small: Callable[[str], Encoder], tally: Tally) -> None:
    check_many_calls(small(family), [6, list(FAMILIES).index(family), calls], calls, tally)


@pytest.mark.parametrize("calls", [2, pytest.param(60, marks=pytest.mark.long)])
def test_any_texts_in_any_company_for_the_embedded_encoder(calls: int, tally: Tally) -> None:
    check_many_calls(Encoder.load("embedded"), [7, calls], calls, tally, most=8)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert"])  # one for each kind of tokenizer
def test_what_is_not_text_is_refused_by_position(family: str, small: Callable[[str], Encoder], tally: Tally) -> None:
    encoder, random = small(family), np.random.default_rng(8)
    wrong = [
        None,
        3,
        2.5,
        True,
        b"bytes",
        ["nested"],
        float("nan"),
        "\ud800",
        "a\udfffb",
        "\udc80" * 3,
        "😀"[:0] + "\ud83d",
    ]
    for number in range(100):
        texts: list[Any] = [new_text(random) for _ in range(random.integers(6))]
        place = int(random.integers(len(texts) + 1))
        texts.insert(place, wrong[number % len(wrong)])
        with tally.case(f"{texts[place]!r} at {place}"), pytest.raises(InputError, match=rf"item {place}: found"):
            encoder.encode(texts)


MILLION = 1_000_000
LONG_TEXTS = {
    "letter": "a" * MILLION,
    "words": "Two dogs run. " * (MILLION // 14),
    "spaces": " " * MILLION,
    "emoji": "😀" * MILLION,
    "marks": "a" + "\u0301" * MILLION,
    "nul": "\0" * MILLION,
    "Han": "漢字" * (MILLION // 2),
    "special tokens": "[CLS] </s> <pad> " * (MILLION // 17),
}


def check_long_text(alone: Alone, text: str) -> None:
    texts = [SENTENCES[0], text]
    expected = [alone(one, "query") for one in texts]
    check(alone.encoder, texts, alone.encoder.encode(texts, role="query"), expected)


def test_a_million_characters_of_words(small: Callable[[str], Encoder]) -> None:
    check_long_text(variants(small("bert"))[-1], LONG_TEXTS["words"])


@pytest.mark.long
@pytest.mark.parametrize("family", ["bert", "roberta", "albert"])
def test_a_million_characters(family: str, small: Callable[[str], Encoder], tally: Tally) -> None:
    alone = variants(small(family))[-1]
    for name, text in LONG_TEXTS.items():
        with tally.case(name):
            check_long_text(alone, text)
