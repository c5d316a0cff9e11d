"""Tokens: special tokens and prompts are added, and only the sentence is truncated."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.tokens import CHARACTERS, LEAST
from sentloom.errors import InputError
from tests.encoder.small_models import SENTENCES

LONG = " ".join(SENTENCES * 5)


def test_ids_without_prompts_equal_the_tokenizers_own(encoder):
    texts = [*SENTENCES, "", "  "]
    ours = encoder.tokenize(texts)
    theirs = encoder.tokens.tokenizer(texts, truncation=True, max_length=encoder.tokens.max_length)["input_ids"]
    assert ours == theirs


def test_prompts_survive_truncation(family, model_folders):
    prompt = Prompt(prefix="Two dogs: ", suffix=" A man knows.")
    encoder = Encoder.load(model_folders[family], prompts={"symmetric": prompt}, max_length=40)
    tokens = encoder.tokens
    before, after = list(tokens.specials.before), [*tokens.suffix_ids(prompt.suffix), *tokens.specials.after]
    prefix = tokens.bare(["Two dogs:"])[0]
    (ids,) = encoder.tokenize([LONG])
    assert len(ids) == 40
    assert ids[: len(before) + len(prefix)] == before + prefix
    assert ids[-len(after) :] == after


WORDS = st.sampled_from([*LONG.split(), "漢字", "x" * 150, "\n", "\t\t", " " * 90, "🙂", "don't", "[SEP]"])


@pytest.mark.parametrize("kind", ["bert", "modernbert", "t5"])  # one per kind of tokenizer
def test_the_end_of_a_very_long_text_is_not_read_but_the_ids_are_those_of_the_whole(model_folders, kind):
    tokens = Encoder.load(model_folders[kind], max_length=10).tokens
    before, after = list(tokens.specials.before), list(tokens.specials.after)
    room, cut = 10 - len(before) - len(after), []

    @settings(max_examples=150)
    @given(st.lists(WORDS, min_size=1, max_size=60), st.sampled_from([600, 9, 1]), st.sampled_from([" ", "", "\n"]))
    def check(words, times, gap):
        text = gap.join(words * times)
        assume(max(map(len, text.split()), default=0) < LEAST // 2)  # of a longer word, only the start is read
        whole = tokens.bare([text])[0]
        (ids,), truncated = tokens.truncate([text], Prompt())
        assert ids == [*before, *whole[:room], *after]
        assert truncated == [0] * (len(whole) > room)
        cut.append(len(text) > room * CHARACTERS)

    check()
    assert any(cut), f"none of {len(cut)} texts was long"


def test_megabytes_cost_as_little_as_their_start(model_folders, monkeypatch):
    tokens, read = Encoder.load(model_folders["bert"], max_length=10).tokens, []
    bare = tokens.bare
    monkeypatch.setattr(tokens, "bare", lambda texts: [read.append(len(text)) or bare([text])[0] for text in texts])
    ((ids,), truncated) = tokens.truncate(["dogs run " * 400_000], Prompt())
    assert (len(ids), truncated) == (10, [0])
    assert sum(read) <= 10 * 64


def test_roles_fall_back_to_the_symmetric_prompt(model_folders):
    prompts = {"symmetric": Prompt(prefix="dogs "), "query": Prompt(prefix="man ")}
    encoder = Encoder.load(model_folders["bert"], prompts=prompts)
    plain = Encoder.load(model_folders["bert"])
    assert encoder.tokenize(["runs"], "query") == plain.tokenize(["man runs"])
    assert encoder.tokenize(["runs"], "document") == plain.tokenize(["dogs runs"])
    with pytest.raises(InputError, match="symmetric, query, document"):
        encoder.tokenize(["runs"], "passage")


def test_a_prompt_that_leaves_no_room_is_refused(model_folders):
    encoder = Encoder.load(model_folders["bert"], prompts={"symmetric": Prompt(suffix=LONG)})
    with pytest.raises(InputError, match="fewer than the maximum length of 64 tokens"):
        encoder.tokenize(["Yes"])
