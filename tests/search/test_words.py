"""BM25 against its formula, word by word, and what counts as a word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.search.words import K1, B, WordIndex, stemming_of, terms_of, words_of

WORDS = st.lists(st.sampled_from(["red", "shoe", "blue", "hat"]), max_size=8).map(" ".join)


def slow_score(query, text, texts):
    """Robertson's formula with Lucene's inverse document frequency."""
    bags = [words_of(bag) for bag in texts]
    mean = sum(map(len, bags)) / len(bags)
    words, total = words_of(text), 0.0
    for word in words_of(query):
        having = sum(word in bag for bag in bags)
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        count = words.count(word)
        total += rarity * count / (count + K1 * (1 - B + B * len(words) / mean)) if count else 0.0
    return total


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_scores_are_those_of_the_formula(texts, query):
    scores = WordIndex(texts).scores([query])
    expected = [slow_score(query, text, texts) if any(map(words_of, texts)) else 0.0 for text in texts]
    np.testing.assert_allclose(scores[0], expected, rtol=1e-5, atol=1e-6)


def test_words():
    assert words_of("Reset your VPN-password, e.g. now!") == ["reset", "your", "vpn", "password", "e", "g", "now"]
    assert words_of("保修 two 年") == ["保", "修", "two", "年"]
    assert words_of("Straße für ÄRGER") == ["straße", "für", "ärger"]


def test_a_code_counts_as_a_whole_besides_its_parts_and_a_hyphen_alone_makes_none():
    assert terms_of("VPN-password for XK-2041/B") == ["vpn", "password", "for", "xk", "2041", "b", "xk-2041/b"]


def test_texts_without_words_and_words_without_texts():
    assert WordIndex(["!", "?"]).scores(["a", ""]).tolist() == [[0, 0], [0, 0]]
    assert WordIndex(["a b"]).scores(["c"]).tolist() == [[0]]
    assert WordIndex(["a b", "b"]).scores([]).shape == (0, 2)
    assert WordIndex([]).scores(["a"]).shape == (1, 0)


def test_rare_words_and_short_texts_count_more():
    texts = ["the red hat", "the blue hat", "the shoe", "the hat and the shoe and a blue coat"]
    assert WordIndex(texts).scores(["red the"])[0].argmax() == 0
    texts = ["shoe", "shoe in a long text about many things"]
    (shoes,) = WordIndex(texts).scores(["shoe"])
    assert shoes[0] > shoes[1] > 0
    assert pytest.approx(float(shoes[0]), rel=1e-5) == slow_score("shoe", "shoe", texts)


@pytest.mark.parametrize(
    ("stemming", "texts", "query"),
    [
        ("english", ["two hotels", "one house"], "hotel"),
        ("german", ["zwei Häuser", "ein Hotel"], "Häusern"),
        ("french", ["deux maisons", "un hôtel"], "maison"),
    ],
)
def test_a_stemmer_finds_other_forms_of_a_word(stemming, texts, query):
    assert WordIndex(texts, stemming).scores([query])[0].argmax() == 0
    assert WordIndex(texts, stemming).scores([query])[0, 0] > 0
    assert WordIndex(texts).scores([query])[0, 0] == 0


def test_the_stemmer_is_that_of_the_language_of_most_texts():
    english = ["Where can I find the opening hours of the library?", "The train to London leaves at nine."] * 5
    german = ["Wo finde ich die Öffnungszeiten der Bibliothek?", "Der Zug nach Berlin fährt um neun Uhr."] * 20
    assert stemming_of(english) == "english"
    assert stemming_of([*english, *german]) == "german"
    assert stemming_of(["今日はとても良い天気ですね。"] * 10) == ""  # Snowball has no stemmer for Japanese
    assert stemming_of([]) == ""
