"""Documents ranked by a served cross-encoder, in the forms of Cohere, Jina and Text Embeddings Inference."""

import json

import numpy as np
import pytest

from sentloom.search.cross_encoder import CrossEncoder
from sentloom.serving.models import ServedReranker
from sentloom.serving.service import ServiceLimits
from tests.search.small_cross_encoders import build_cross_encoder
from tests.serving.asking import ask, post

DOCUMENTS = ["Two dogs run across the snow.", "The train to Lisbon had left.", "Yes", "No one knows; it rains."]
QUERY = "Where are the dogs?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_cross_encoder(tmp_path_factory.mktemp("models") / "ranks")


@pytest.fixture
def service(make_service, folder):
    return make_service(reranker=ServedReranker.load(str(folder)))


@pytest.fixture(scope="module")
def logits(folder):
    return CrossEncoder.load(folder).score([(QUERY, document) for document in DOCUMENTS])


def test_results_are_in_the_form_of_cohere_and_jina(service, logits):
    body = {"model": "ranks", "query": QUERY, "documents": DOCUMENTS, "top_n": 2, "return_documents": True}
    answer = post(service, "/v1/rerank", body)
    assert answer.status_code == 200
    assert answer.json()["model"] == "ranks"
    best = np.argsort(-logits)[:2].tolist()
    results = answer.json()["results"]
    assert [result["index"] for result in results] == best
    assert [result["document"] for result in results] == [{"text": DOCUMENTS[row]} for row in best]
    shares = 1 / (1 + np.exp(-logits[best].astype(float)))
    assert [result["relevance_score"] for result in results] == pytest.approx(shares.tolist(), abs=1e-5)


def test_documents_may_be_objects_and_are_not_returned_unless_asked_for(service):
    plain = post(service, "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS})
    objects = post(service, "/v1/rerank", {"query": QUERY, "documents": [{"text": text} for text in DOCUMENTS]})
    assert plain.json()["results"] == objects.json()["results"]
    assert len(plain.json()["results"]) == 4
    assert all(result.keys() == {"index", "relevance_score"} for result in plain.json()["results"])


def test_results_are_in_the_form_of_tei(service, logits):
    answer = post(service, "/rerank", {"query": QUERY, "texts": DOCUMENTS, "raw_scores": True, "return_text": True})
    assert [rank["index"] for rank in answer.json()] == np.argsort(-logits).tolist()
    assert [rank["score"] for rank in answer.json()] == pytest.approx(np.sort(logits)[::-1].tolist(), abs=1e-5)
    assert {rank["text"] for rank in answer.json()} == set(DOCUMENTS)
    shares = post(service, "/rerank", {"query": QUERY, "texts": DOCUMENTS}).json()
    assert all(0 <= rank["score"] <= 1 and "text" not in rank for rank in shares)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"query": "", "documents": ["a"]}, 422, "query"),
        ({"query": "\ud800", "documents": ["a"]}, 422, "query"),
        ({"query": "a", "documents": ["\ud800"]}, 422, "surrogate"),
        ({"query": "a", "documents": []}, 422, "empty"),
        ({"query": "a", "documents": [{"title": "b"}]}, 422, "not a string"),
        ({"query": "a", "documents": ["b"], "top_n": 0}, 422, "top_n"),
        ({"query": "a", "documents": ["b"] * 5}, 413, "more than 4"),
        ({"query": "a", "documents": ["b"], "model": "other"}, 404, "Name ranks"),
    ],
)
def test_what_cannot_be_ranked_is_refused(make_service, folder, body, status, said):
    service = make_service(reranker=ServedReranker.load(str(folder)), limits=ServiceLimits(max_reranked=4))
    sent = {"content": json.dumps(body), "headers": {"content-type": "application/json"}}
    (answer,) = ask(service, ("POST", "/v1/rerank", sent))
    assert answer.status_code == status
    assert said in answer.json()["error"]["message"]


def test_without_a_re_ranker_the_answer_says_how_to_start_one(make_service):
    answer = post(make_service(), "/v1/rerank", {"query": "a", "documents": ["b"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_reranker")
    assert "--reranker" in answer.json()["error"]["message"]


def test_requests_at_the_same_time_get_their_own_answers(service):
    texts = [DOCUMENTS[:2], DOCUMENTS[2:]]
    asked = [("POST", "/rerank", {"json": {"query": QUERY, "texts": part, "return_text": True}}) for part in texts]
    for part, answer in zip(texts, ask(service, *asked), strict=True):
        assert {rank["text"] for rank in answer.json()} == set(part)
