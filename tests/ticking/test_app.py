"""The page: its token, its answers, its policy; what it does is tried in Chromium by `make faults`."""

import re
import resource
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from sentloom.ticking.answers import header_for, open_answers, read_answers
from sentloom.ticking.app import build_app, page, page_headers
from sentloom.ticking.session import Session

QUERIES = [f"query {n}" for n in range(100)]


@pytest.fixture
def session(questions, tmp_path):
    with open_answers(tmp_path / "ticks.jsonl", header_for(questions, "b", "f")) as file:
        yield Session(questions, file, QUERIES)


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def client(session, stopped):
    app = build_app(session, "secret", lambda: stopped.append(True))
    return TestClient(app, base_url="http://127.0.0.1:1234/secret/")


def test_answers_are_saved_and_the_next_question_comes_back(client, tmp_path):
    assert client.get("state").json()["question"]["number"] == 0
    after = client.post("answer", json={"number": 0, "choice": "both"})
    assert (after.status_code, after.json()["question"]["number"], after.json()["answered"]) == (200, 1, 1)
    assert [answer.answer for answer in read_answers(tmp_path / "ticks.jsonl").given] == ["both"]
    assert client.post("answer", json={"number": 0, "choice": "left"}).status_code == 409
    assert client.post("back").json()["question"]["number"] == 0


def test_a_full_disk_is_said_and_the_same_question_can_be_answered_later(client, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "ticks.jsonl").stat().st_size + 9, limits[1]))
    try:
        full = client.post("answer", json={"number": 0, "choice": "both"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (full.status_code, "ticks.jsonl" in full.json()["error"]) == (507, True)
    assert client.post("answer", json={"number": 0, "choice": "both"}).status_code == 200
    assert len(read_answers(tmp_path / "ticks.jsonl").given) == 1


def test_what_is_no_answer_is_refused(client, tmp_path):
    for body in (b"", b"[]", b'{"number": true, "choice": "left"}', b'{"number": 0, "choice": "base"}', b" " * 2000):
        assert client.post("answer", content=body).status_code == 422
    assert read_answers(tmp_path / "ticks.jsonl").given == ()


def test_without_the_token_or_under_another_name_nothing_is_found(session):
    app = build_app(session, "secret", lambda: None)
    for base, path in (
        ("http://127.0.0.1", "/"),
        ("http://127.0.0.1", "/wrong/state"),
        ("http://127.0.0.1", "/sécret/state"),
        ("http://evil.example", "/secret/state"),
    ):
        found = TestClient(app, base_url=base).get(path)
        assert (found.status_code, found.json()) == (404, {"error": "not found"})
    assert TestClient(app, base_url="http://localhost:80").get("/secret/state").status_code == 200


def test_finish_stops_the_server(client, stopped):
    assert client.post("finish").status_code == 200
    assert stopped == [True]


def test_the_page_loads_nothing_and_runs_only_its_own_script(client):
    found = client.get("")
    policy = found.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in re.sub(r"<!DOCTYPE.*?>", "", found.text)
    assert found.headers["referrer-policy"] == "no-referrer"
    assert page_headers(page().replace("busy = false", "busy = true"))["content-security-policy"] != policy
    assert "REPORT STYLES" not in found.text


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_page_is_accessible_and_its_parts_are_there():
    parser = Elements()
    parser.feed(page())
    ids = {given["id"] for _, given in parser.found if "id" in given}
    assert set(re.findall(r'\$\("([\w-]+)"\)', page())) <= ids
    assert not [tag for tag, given in parser.found if "style" in given or any(name.startswith("on") for name in given)]
    assert ("html", {"lang": "en"}) in parser.found
    assert {given["data-choice"] for _, given in parser.found if "data-choice" in given} == {
        *("left", "right", "both", "neither", "skip")
    }
    roles = {given.get("role") for _, given in parser.found}
    assert {"status", "alert"} <= roles
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", page())
