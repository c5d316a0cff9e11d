"""Models by name, and health."""

import threading

import torch

from sentloom.serving.batcher import BatchLimits
from sentloom.serving.service import ServiceLimits
from tests.serving.asking import ask, get, post


def test_an_unknown_model_is_named_with_those_there_are(make_service):
    answer = post(make_service(), "/v1/embeddings", {"input": "a", "model": "text-embedding-3-small"})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "model_not_found"
    assert error["message"] == "There is no model 'text-embedding-3-small'. Choose one of: small."


def test_health_compares_a_probe_with_its_vector(make_service):
    answer = get(make_service(), "/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["cosine_of_probe"]["small"] > 0.9999


def test_health_fails_when_the_weights_change(make_service, encoder):
    service = make_service()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    answer = get(service, "/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "failing")


def test_frequent_health_checks_cost_one_probe(make_service):
    service = make_service()
    answers = ask(service, *[("GET", "/health", {})] * 20)
    assert {answer.status_code for answer in answers} == {200}
    assert service.batcher.counts.texts == 1


def test_health_is_answered_when_the_queue_is_full(make_service):
    service = make_service(BatchLimits(requests=0))
    full, healthy = ask(service, ("POST", "/v1/embeddings", {"json": {"input": "a"}}), ("GET", "/health", {}))
    assert (full.status_code, healthy.status_code) == (429, 200)


def test_a_model_that_hangs_is_not_healthy(make_service, executor):
    service, free = make_service(limits=ServiceLimits(probe_seconds=0.05)), threading.Event()
    blocked = [executor.submit(free.wait, 60) for _ in range(2)]  # both workers
    try:
        assert get(service, "/health").status_code == 503
    finally:
        free.set()
    assert all(request.result() for request in blocked)
