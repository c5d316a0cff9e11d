"""What is refused before it reaches an endpoint."""

import asyncio

import pytest

from sentloom.serving.app import build_app
from sentloom.serving.batcher import BatchLimits
from sentloom.serving.gate import OPEN, PATHS
from sentloom.serving.service import Key, ServiceLimits
from tests.serving.asking import ask, get, post

SECRET = "0123456789abcdef0123"
HEADERS = {"content-type": "application/json"}


def send(service, messages, headers=()):
    """The status of a request whose body comes in the given messages; after them, nothing comes."""
    scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "query_string": b"", "http_version": "1.1"}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers], "root_path": ""}
    left, sent = list(messages), []

    async def receive():
        return left.pop(0) if left else await asyncio.Event().wait()

    async def keep(message):
        sent.append(message)

    asyncio.run(asyncio.wait_for(build_app(service)(scope, receive, keep), 30))
    return sent[0]["status"] if sent else None


def chunk(body, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


def test_without_the_key_only_the_page_and_health_are_answered(make_service):
    service = make_service(key=Key(SECRET))
    for path in sorted(PATHS):
        answer = get(service, path)
        assert (answer.status_code == 401) == (path not in OPEN), path
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert get(service, "/unknown").status_code == 401


def test_with_the_key_requests_pass(make_service):
    service = make_service(key=Key(SECRET))
    good, bad = ({"authorization": f"Bearer {key}"} for key in (SECRET, "0123456789abcdef0124"))
    assert get(service, "/v1/models", headers=good).status_code == 200
    assert get(service, "/v1/models", headers=bad).status_code == 401
    assert post(service, "/v1/embeddings", {"input": "a"}, headers=good).status_code == 200


def test_without_a_key_other_host_names_are_refused(make_service):
    """A web page whose name is pointed to 127.0.0.1 could otherwise read answers."""
    request = ("GET", "/v1/models", {})
    assert ask(make_service(), request, host="attacker.example")[0].status_code == 403
    assert ask(make_service(), request, host="127.0.0.1:8080")[0].status_code == 200
    with_key = {"headers": {"authorization": f"Bearer {SECRET}"}}
    found = ask(make_service(key=Key(SECRET)), ("GET", "/v1/models", with_key), host="embeddings.example")
    assert found[0].status_code == 200


def test_a_form_of_another_site_is_refused(make_service):
    """A page elsewhere may send text/plain without asking; JSON it may not."""
    answer = post(
        make_service(), "/v1/embeddings", None, content=b'{"input": "a"}', headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 422


def test_bodies_beyond_the_limit_are_refused_whether_declared_or_not(make_service):
    service = make_service(limits=ServiceLimits(max_body=1000))
    small, large = b'{"input": "' + b"a" * 900 + b'"}', b'{"input": "' + b"a" * 1000 + b'"}'
    assert post(service, "/v1/embeddings", None, content=small, headers=HEADERS).status_code == 200
    assert post(service, "/v1/embeddings", None, content=large, headers=HEADERS).status_code == 413
    assert send(service, [chunk(large[:600]), chunk(large[600:], False)]) == 413
    assert send(service, [], [(b"content-length", b"99999999999")]) == 413  # nothing is read
    assert send(service, [], [(b"content-length", b"-5")]) == 413


def test_a_body_that_does_not_arrive_in_time_is_refused(make_service):
    service = make_service(limits=ServiceLimits(body_seconds=0.05))
    assert send(service, [chunk(b'{"input": ')]) == 408


def test_a_client_that_goes_while_it_sends_gets_no_answer_and_is_counted(make_service):
    service = make_service()
    assert send(service, [chunk(b'{"input": '), {"type": "http.disconnect"}]) is None
    assert 'sentloom_requests_total{path="/v1/embeddings",status="499"} 1.0' in service.metrics.page().decode()
    assert service.in_flight == 0


def test_a_full_queue_is_refused_before_the_body_is_read(make_service):
    service = make_service(BatchLimits(requests=0))
    answer = post(service, "/v1/embeddings", {"input": "a"})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert send(service, []) == 429


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/"])
def test_while_it_shuts_down_new_requests_are_refused(make_service, path):
    service = make_service()
    service.draining = True
    answer = get(service, path)
    assert (answer.status_code, answer.headers["connection"], answer.headers["retry-after"]) == (503, "close", "1")
