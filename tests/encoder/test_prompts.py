"""Prompts: the fallback by role, a shared suffix, and what is refused."""

import pytest

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.tokens import ROLES, check_prompts, prompt_for, shared_suffix
from sentloom.errors import InputError


@pytest.mark.parametrize("prompts", [{"passage": Prompt("p: ")}, {"query": "q: "}])
def test_invalid_prompts_are_refused(model_folders, prompts):
    with pytest.raises(InputError, match="a Prompt for one of symmetric, query, document"):
        Encoder.load(model_folders["bert"], prompts=prompts)


def test_query_and_document_fall_back_to_the_symmetric_prompt():
    prompts = {"symmetric": Prompt("all: "), "query": Prompt("query: ")}
    assert [prompt_for(prompts, role).prefix for role in ROLES] == ["all: ", "query: ", "all: "]
    assert prompt_for({}, "document") == Prompt()
    with pytest.raises(InputError, match=r"'passage' is unknown\. Expected one of symmetric, query, document"):
        prompt_for(prompts, "passage")


@pytest.mark.parametrize(
    ("suffixes", "shared"),
    [({}, ""), ({"symmetric": "!"}, "!"), ({"query": "!"}, None), ({"symmetric": "!", "document": "?"}, None)],
)
def test_a_suffix_is_shared_if_every_role_has_it(suffixes, shared):
    assert shared_suffix({role: Prompt(suffix=suffix) for role, suffix in suffixes.items()}) == shared


def test_a_prompt_is_text():
    with pytest.raises(InputError, match=r"Prompt\(prefix=5, suffix=''\) is not valid"):
        check_prompts({"query": Prompt(5)})
