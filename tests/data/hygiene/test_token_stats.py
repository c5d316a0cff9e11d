"""Tokens per word, counted by hand."""

import pytest

from sentloom.data.hygiene.inspection import TokenStats, count_tokens
from sentloom.data.shapes import Shape
from tests.small_data import build_dataset


def pairs_of_letters(texts: list[str]) -> list[list[int]]:
    """Tokenise into pairs of letters; the id is 0 for pairs with a z."""
    words = [[word[at : at + 2] for word in text.split() for at in range(0, len(word), 2)] for text in texts]
    return [[0 if "z" in piece else 1 for piece in text] for text in words]


def test_tokens_per_word_by_column_without_punctuation() -> None:
    data = build_dataset(Shape.PARALLEL, [("a, (bb)!", "cccc dddddd"), ("ccc", "zz ee")])
    source, target = count_tokens(data, pairs_of_letters, 0)
    assert (source.column, source.unit, source.mean, source.unknown) == ("source", "word", 4 / 3, 0)
    assert (target.column, target.unit, target.mean, target.unknown) == ("target", "word", 7 / 4, 1 / 7)
    assert not source.many
    assert target.many
    assert str(target) == "target, 1.75 tokens per word (14.3% of them unknown)"


def test_scripts_without_spaces_are_counted_by_characters() -> None:
    data = build_dataset(Shape.TEXTS, [("今天天气很好。",), ("我 爱你",)])
    (stats,) = count_tokens(data, lambda texts: [[1] * len(text.replace(" ", "")) * 2 for text in texts], None)
    assert (stats.unit, stats.mean, stats.unknown) == ("character", 2, 0)


@pytest.mark.parametrize("text", ["...", "!"])
def test_text_without_words(text) -> None:
    assert count_tokens(build_dataset(Shape.TEXTS, [(text,)]), pairs_of_letters, 0) == [
        TokenStats("text", "word", 0, 0)
    ]


def test_lists_of_sentences() -> None:
    stats = count_tokens(build_dataset(Shape.TRIPLETS, [("a", "b", ["cc", "dddd eeee"])]), pairs_of_letters, 0)
    assert stats[2] == TokenStats("negatives", "word", 5 / 3, 0)
