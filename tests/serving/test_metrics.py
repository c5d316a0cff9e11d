"""The page for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from tests.serving.asking import ask, get


def samples(text):
    """The values of a page by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_texts_tokens_and_batches_are_counted(make_service):
    service = make_service()
    body = {"json": {"input": ["No one knows.", "Yes"]}}
    ask(
        service, ("POST", "/v1/embeddings", body), ("POST", "/v1/embeddings", {"json": {}}), ("GET", "/secret/path", {})
    )
    found = samples(get(service, "/metrics").text)
    assert found["sentloom_requests_total", "/v1/embeddings", "200"] == 1
    assert found["sentloom_requests_total", "/v1/embeddings", "422"] == 1
    assert found["sentloom_requests_total", "404", "other"] == 1  # paths of strangers make no new series
    assert found["sentloom_texts_total", "small"] == 2
    tokens = sum(map(len, service.models["small"].encoder.tokenize(["No one knows.", "Yes"])))
    assert found["sentloom_tokens_total", "small"] == tokens == found["sentloom_batch_tokens_total",]
    assert found["sentloom_batches_total",] == 1
    assert found["sentloom_queue_tokens",] == 0
    assert found["sentloom_requests_in_flight",] == 1  # this one
    assert found["sentloom_request_seconds_count", "/v1/embeddings"] == 2
