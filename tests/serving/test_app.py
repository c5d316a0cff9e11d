"""The endpoints, in this process."""

import asyncio
import base64
import json
import threading

import httpx2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder.formats.static import StaticBackbone
from sentloom.encoder.heads import record_dimensions
from sentloom.encoder.tokens import Prompt
from sentloom.serving.app import INLINE, build_app
from sentloom.serving.batcher import BatchLimits
from sentloom.serving.service import TOKENISERS, ServiceLimits
from tests.encoder.small_models import SENTENCES
from tests.serving.asking import ask, get, post


def vectors_of(answer):
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert [row["index"] for row in data] == list(range(len(data)))
    return np.array([row["embedding"] for row in data], np.float32)


def test_a_list_gets_the_vectors_of_encode(make_service, encoder):
    answer = post(make_service(), "/v1/embeddings", {"model": "small", "input": SENTENCES})
    np.testing.assert_allclose(vectors_of(answer), encoder.encode(SENTENCES), atol=1e-6)
    tokens = sum(map(len, encoder.tokenize(SENTENCES)))
    assert answer.json()["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert (answer.json()["object"], answer.json()["model"]) == ("list", "small")
    assert "sentloom-truncated" not in answer.headers


@pytest.mark.parametrize("text", ["Yes", "", " \n", "🙂 نعم 是", "a\x00b"])
def test_a_string_gets_one_vector(make_service, encoder, text):
    answer = post(make_service(), "/v1/embeddings", {"input": text})
    np.testing.assert_allclose(vectors_of(answer), encoder.encode([text]), atol=1e-6)


def test_base64_is_little_endian_float32(make_service, encoder):
    answer = post(make_service(), "/v1/embeddings", {"input": SENTENCES, "encoding_format": "base64"})
    rows = [np.frombuffer(base64.b64decode(row["embedding"]), "<f4") for row in answer.json()["data"]]
    np.testing.assert_allclose(rows, encoder.encode(SENTENCES), atol=1e-6)


def test_roles_select_prompts(make_service, encoder):
    encoder.prompts = {"query": Prompt("find: "), "document": Prompt("text: "), "symmetric": Prompt()}
    service = make_service()
    for role in ("symmetric", "query", "document"):
        answer = post(service, "/v1/embeddings", {"input": ["Yes"], "role": role})
        np.testing.assert_allclose(vectors_of(answer), encoder.encode(["Yes"], role=role), atol=1e-6)
    assert get(service, "/v1/models").json()["data"][0]["roles"] == ["document", "query"]


def test_dimensions_only_where_the_model_was_trained_for_them(make_service, encoder):
    refused = post(make_service(), "/v1/embeddings", {"input": "Yes", "dimensions": 8})
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "dimensions"
    assert "small was not trained for 8 dimensions" in refused.json()["error"]["message"]
    record_dimensions(encoder, [32, 8])
    answer = post(make_service(), "/v1/embeddings", {"input": "Yes", "dimensions": 8})
    np.testing.assert_allclose(vectors_of(answer), encoder.encode(["Yes"], dimension=8), atol=1e-6)


def test_a_large_request_is_split_and_answered_in_order(make_service, encoder):
    texts = [f"{SENTENCES[at % 8]} {at}" for at in range(500)]
    service = make_service()
    answer = post(service, "/v1/embeddings", {"input": texts})
    np.testing.assert_allclose(vectors_of(answer), encoder.encode(texts), atol=1e-6)
    assert service.batcher.counts.batches > 2


def test_requests_at_the_same_time_share_batches_and_get_their_own_vectors(make_service, encoder):
    service = make_service()
    bodies = [{"input": [f"{SENTENCES[at % 8]} {at}"]} for at in range(60)]
    answers = ask(service, *(("POST", "/v1/embeddings", {"json": body}) for body in bodies))
    expected = encoder.encode([body["input"][0] for body in bodies])
    np.testing.assert_allclose(np.concatenate([vectors_of(answer) for answer in answers]), expected, atol=1e-6)
    assert service.batcher.counts.texts == 60
    assert service.batcher.counts.batches < 20


def test_truncated_texts_are_listed_in_a_header(make_service):
    long = "dogs " * 200
    answer = post(make_service(), "/v1/embeddings", {"input": ["Yes", long, "No", long]})
    assert answer.headers["sentloom-truncated"] == "1,3"
    many = post(make_service(), "/v1/embeddings", {"input": [long] * 101})
    assert many.headers["sentloom-truncated"].endswith(",98,99,...")


def test_similarity_is_the_cosine(make_service, encoder):
    a, b = SENTENCES[:3], SENTENCES[3:5]
    answer = post(make_service(), "/v1/similarity", {"a": a, "b": b})
    np.testing.assert_allclose(answer.json()["similarities"], encoder.similarity(a, b), atol=1e-5)
    alone = post(make_service(), "/v1/similarity", {"a": a}).json()["similarities"]
    np.testing.assert_allclose(alone, encoder.similarity(a, a), atol=1e-5)


def test_too_many_texts_or_cells_are_refused(make_service):
    service = make_service(limits=ServiceLimits(max_inputs=10, max_cells=20))
    assert post(service, "/v1/embeddings", {"input": ["a"] * 10}).status_code == 200
    assert post(service, "/v1/embeddings", {"input": ["a"] * 11}).status_code == 413
    assert post(service, "/v1/similarity", {"a": ["a"] * 4, "b": ["b"] * 5}).status_code == 200
    assert post(service, "/v1/similarity", {"a": ["a"] * 5}).status_code == 413


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/similarity"])
def test_a_vector_that_is_not_finite_or_zero_is_never_sent(make_service, encoder, value, path):
    service = make_service()
    last = [module for module in encoder.modules() if isinstance(module, torch.nn.LayerNorm)][-1]
    with torch.no_grad():
        last.weight.fill_(value)
        last.bias.fill_(value)
    answer = post(service, path, {"input": "Yes"} if path.endswith("embeddings") else {"a": "Yes"})
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "unusable_vector"
    assert get(service, "/health").status_code == 503


def test_one_broken_text_does_not_spoil_its_batch(make_service, encoder):
    service = make_service()
    only_here = (set(encoder.tokens.bare(["snow"])[0]) - set(encoder.tokens.bare(["Yes"])[0])).pop()
    with torch.no_grad():
        encoder.backbone.model.get_input_embeddings().weight[only_here] = float("nan")
    broken, fine = ask(
        service,
        ("POST", "/v1/embeddings", {"json": {"input": ["Yes", "snow"]}}),
        ("POST", "/v1/embeddings", {"json": {"input": "Yes"}}),
    )
    assert broken.status_code == 500
    assert "text 1" in broken.json()["error"]["message"]
    assert fine.status_code == 200


def test_queued_work_of_a_client_that_has_gone_is_dropped(make_service, free):
    service = make_service()

    async def run():
        served, busy = service.models["small"], []
        for text in ("first", "second"):  # both workers
            busy.append(service.batcher.submit(served.encode, served.tokenize([text], "query").ids))
            while service.batcher.running < len(busy):
                await asyncio.sleep(0.001)
        status = await gone_when(service, lambda: service.batcher.waiting_tokens, ["Yes", "No"])
        assert service.batcher.waiting_tokens == 0
        free.set()
        await asyncio.gather(*busy)
        return status

    assert asyncio.run(run()) == 499
    assert service.batcher.counts.dropped == 1
    assert service.batcher.counts.texts == 2  # those of the busy workers


def test_texts_of_a_client_that_has_gone_are_not_tokenised_and_short_requests_do_not_wait_for_them(make_service):
    service, free = make_service(BatchLimits(requests=2)), threading.Event()
    busy = [service.tokenisers.submit(free.wait, 60) for _ in range(TOKENISERS)]
    long = ["a " * INLINE]

    async def run():
        status = await gone_when(service, lambda: service.batcher.requests, long)
        return status, service.batcher.requests

    try:
        assert asyncio.run(run()) == (499, 0)
        assert post(service, "/v1/embeddings", {"input": "Yes"}).status_code == 200
    finally:
        free.set()
    assert all(request.result() for request in busy)
    assert service.batcher.counts.dropped == 1
    assert service.batcher.counts.texts == 1
    assert post(service, "/v1/embeddings", {"input": long}).headers["sentloom-truncated"] == "0"


async def gone_when(service, condition, texts):
    """The status of a request whose client goes away once a condition holds."""
    scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "query_string": b"", "http_version": "1.1"}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", b"application/json")], "root_path": ""}
    messages = [{"type": "http.request", "body": json.dumps({"input": texts}).encode(), "more_body": False}]
    sent, gone = [], asyncio.Event()

    async def keep(message):
        sent.append(message)

    async def receive():
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    answering = asyncio.ensure_future(build_app(service)(scope, receive, keep))
    while not condition():
        await asyncio.sleep(0.001)
    gone.set()
    await answering
    return sent[0]["status"]


def test_a_static_model_names_the_texts_without_a_known_token(make_service, encoder, monkeypatch):
    table = torch.zeros(encoder.tokens.tokenizer.vocab_size, 32)
    known = encoder.tokens.bare(["dogs"])[0]
    table[known] = 1.0
    monkeypatch.setattr(encoder, "backbone", StaticBackbone(table, "static", ""))
    service = make_service()
    assert post(service, "/v1/embeddings", {"input": ["dogs"]}).status_code == 200
    answer = post(service, "/v1/embeddings", {"input": ["dogs", "🙂", "dogs", ""]})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("input", "no_known_token")
    assert error["message"].endswith("by position: 1, 3. Leave them out.")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    [
        "input",
        "model",
        "dimensions",
        "encoding_format",
        "role",
        "user",
        "a",
        "b",
        "query",
        "k",
        "documents",
        "texts",
        "top_n",
    ]
)


def test_any_json_gets_an_answer_of_2xx_or_4xx(make_service):
    transport = httpx2.ASGITransport(build_app(make_service()), raise_app_exceptions=False)
    client = httpx2.AsyncClient(transport=transport, base_url="http://localhost")
    with asyncio.Runner() as runner:

        @given(
            st.sampled_from(
                ["/v1/embeddings", "/v1/similarity", "/v1/search", "/v1/rerank", "/rerank", "/v1/classify"]
            ),
            st.dictionaries(fields, values),
        )
        def check(path, body):
            headers = {"content-type": "application/json"}
            answer = runner.run(client.post(path, content=json.dumps(body), headers=headers))
            assert answer.status_code in (200, 400, 404, 413, 422), (body, answer.text)
            assert answer.status_code == 200 or answer.json()["error"]["message"]

        check()


def test_the_models_are_listed(make_service, encoder):
    answer = get(make_service(), "/v1/models").json()
    (card,) = answer["data"]
    assert (card["id"], card["object"], card["dimension"], card["max_tokens"]) == ("small", "model", 32, 64)
    assert answer["texts"] == 0
    assert get(make_service(), "/v1/models/small").json()["id"] == "small"
    assert get(make_service(), "/v1/models/owner/other").status_code == 404


def test_the_page_needs_no_other_server(make_service):
    service = make_service()
    page = get(service, "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in ("/", "/page.css", "/page.js"):
        text = get(service, path).text
        assert "//cdn" not in text
        assert "https://" not in text
        assert not [word for word in text.split() if word.startswith(('src="http', 'href="http'))]


def test_the_schema_names_every_answer(make_service):
    schema = get(make_service(), "/openapi.json").json()
    assert set(schema["paths"]) == {
        "/v1/embeddings",
        "/v1/classify",
        "/v1/similarity",
        "/v1/search",
        "/v1/rerank",
        "/rerank",
        "/v1/models",
        "/v1/models/{name}",
        "/health",
    }
    answers = set(schema["paths"]["/v1/embeddings"]["post"]["responses"])
    assert {"200", "400", "401", "404", "408", "413", "422", "429", "500", "503"} <= answers
