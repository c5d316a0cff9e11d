"""Tokens: special tokens and prompts are added, and only the sentence is truncated."""

import pytest

from sentloom.encoder import Encoder, Prompt
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
