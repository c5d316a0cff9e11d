"""What requests may contain."""

import pytest
from pydantic import ValidationError

from sentloom.serving.schema import EmbeddingRequest, SearchRequest, SimilarityRequest


def test_a_string_is_a_list_of_one():
    assert EmbeddingRequest(input="a").input == ["a"]
    assert EmbeddingRequest(input=["a", ""]).input == ["a", ""]
    assert SimilarityRequest(a="x", b=["y"]).b == ["y"]


@pytest.mark.parametrize("ids", [[1, 2, 3], [[1, 2], [3]], [0]])
def test_token_ids_are_refused_with_what_to_change(ids):
    with pytest.raises(
        ValidationError, match=r"token ids.*Send the texts themselves.*check_embedding_ctx_length=False"
    ):
        EmbeddingRequest(input=ids)
    with pytest.raises(ValidationError, match="query holds token ids"):
        SearchRequest(query=ids)


def test_lone_surrogates_are_refused():
    for text in ("a\ud800b", ["fine", "\udfff"]):
        with pytest.raises(ValidationError, match="surrogate"):
            EmbeddingRequest(input=text)


@pytest.mark.parametrize("k", [0, -1, 1001, "5", 1.5, True])
def test_k_is_bounded(k):
    with pytest.raises(ValidationError):
        SearchRequest(query="a", k=k)


def test_the_schema_allows_a_string_or_a_list():
    kinds = EmbeddingRequest.model_json_schema()["properties"]["input"]["anyOf"]
    assert [kind["type"] for kind in kinds] == ["string", "array"]


@pytest.mark.parametrize("given", [[["a", "b"]], [True], [1.5], [None]])
def test_what_is_neither_text_nor_token_ids_is_named(given):
    with pytest.raises(ValidationError, match="Text 0 is not a string"):
        EmbeddingRequest(input=given)


def test_no_format_is_the_default():
    assert EmbeddingRequest(input="a", encoding_format=None).encoding_format is None
