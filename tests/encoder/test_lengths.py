"""Lengths in tokens, and the length that covers most texts."""

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.lengths import count_cut, covering_cut, covering_length, token_counts
from sentloom.encoder.tokens import Prompt
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture
def encoder(tmp_path):
    return Encoder.load(build_model_folder("bert", tmp_path / "bert"))


def test_counts_are_those_of_whole_texts(encoder):
    expected = [len(ids) for ids in encoder.tokenize(SENTENCES)]
    assert token_counts(encoder, SENTENCES).tolist() == expected
    whole = encoder.tokens.max_length
    encoder.tokens.max_length = 6
    assert token_counts(encoder, SENTENCES).tolist() == expected
    encoder.tokens.max_length = whole
    encoder.prompts = {"symmetric": Prompt("so: ", " ok")}
    assert token_counts(encoder, SENTENCES).tolist() == [len(ids) for ids in encoder.tokenize(SENTENCES)]


def test_the_longest_prompt_of_any_role_counts(encoder):
    plain = token_counts(encoder, SENTENCES)
    encoder.prompts = {"query": Prompt("a a a a "), "document": Prompt("a ", " a")}
    assert (token_counts(encoder, SENTENCES) - plain).tolist() == [4] * len(SENTENCES)
    encoder.prompts = {}
    assert token_counts(encoder, []).tolist() == []


def test_nineteen_of_twenty_are_covered(encoder):
    texts = [" ".join(["a"] * n) for n in (*range(15, 34), 110)]  # 17 to 35 and 112 tokens with the special ones
    assert token_counts(encoder, texts).tolist() == [*range(17, 36), 112]
    encoder.tokens.max_length = 128
    encoder.tokens.max_length = covering_length(encoder, texts)
    assert encoder.tokens.max_length == 35
    cut = count_cut(encoder, texts)
    assert (cut.length, cut.texts, cut.cut) == (35, 20, 1)
    assert str(cut) == "5.0% of the texts are cut at 35 tokens"


def test_nothing_is_cut_if_that_saves_less_than_a_tenth_of_the_tokens(encoder):
    encoder.tokens.max_length = 128
    short = [" ".join(["a"] * 18)] * 19  # 20 tokens each, 380 together
    assert covering_length(encoder, [*short, " ".join(["a"] * 60)]) == 62  # 400 of 442 tokens would be left: 90.5%
    assert covering_length(encoder, [*short, " ".join(["a"] * 63)]) == 20  # 400 of 445: 89.9%


def test_the_mean_length_is_that_of_texts_after_they_are_cut(encoder):
    texts = [" ".join(["a"] * n) for n in (*[20] * 19, 90)]  # 22 tokens, and one of 92
    encoder.tokens.max_length = 128
    cut, mean = covering_cut(encoder, texts)
    assert (cut.length, cut.texts, cut.cut, mean) == (22, 20, 1, 22.0)
    encoder.tokens.max_length = 20
    cut, mean = covering_cut(encoder, texts)
    assert (cut.length, cut.cut, mean) == (20, 20, 20.0)


def test_it_is_neither_below_the_shortest_nor_above_the_encoders_own(encoder):
    assert covering_length(encoder, ["a"] * 9) == 16
    assert covering_length(encoder, []) == 16
    encoder.tokens.max_length = 20
    assert covering_length(encoder, [" ".join(["a"] * 90)]) == 20
    assert str(count_cut(encoder, ["a"])) == ""
