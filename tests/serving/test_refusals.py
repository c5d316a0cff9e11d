"""The form of errors."""

import json

import pytest

from sentloom.serving.schema import Refusal
from tests.serving.asking import get, post


def test_an_error_has_the_fields_of_openai():
    answer = Refusal(429, "Too much.", param="input", code="queue_full", retry_after="3").response()
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "3"
    expected = {"message": "Too much.", "type": "rate_limit_error", "param": "input", "code": "queue_full"}
    assert json.loads(answer.body) == {"error": expected}


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        ({}, "input is missing. Add it.", "input"),
        ({"input": "a", "dimension": 3}, "dimension is not a known field. Remove it or correct its name.", "dimension"),
        ({"input": "a", "dimensions": "3"}, "dimensions is not valid. Expected a whole number.", "dimensions"),
        (
            {"input": "a", "encoding_format": "int8"},
            "encoding_format is not valid. Expected 'float' or 'base64'.",
            None,
        ),
        ({"input": 5}, "Expected a string or a list of strings.", "input"),
        ({"input": []}, "The list of texts is empty. Send at least one text.", "input"),
        ({"input": ["a", None]}, "Text 1 is not a string. Send a string or a list of strings.", "input"),
    ],
)
def test_a_fault_in_a_body_is_one_sentence(make_service, body, message, param):
    answer = post(make_service(), "/v1/embeddings", body)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == message
    assert param is None or answer.json()["error"]["param"] == param


@pytest.mark.parametrize("content", [b"", b"{", b'{"input": "\xff"}', b"[" * 50_000, b"null", b'"text"'])
def test_bodies_that_are_no_json_objects(make_service, content):
    headers = {"content-type": "application/json"}
    answer = post(make_service(), "/v1/embeddings", None, content=content, headers=headers)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_unknown_paths_and_methods(make_service):
    unknown = get(make_service(), "/v2/{x}").json()["error"]["message"]
    assert unknown.startswith("There is nothing at /v2/{x}. ")
    wrong = get(make_service(), "/v1/embeddings")
    assert wrong.json()["error"]["message"].startswith("/v1/embeddings does not take GET. ")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
