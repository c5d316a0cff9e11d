"""A running server is attacked: too many connections, wide JSON, huge texts, and weights that change under it."""

import json
import os
import re
import resource
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import torch
import uvicorn

from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.attacks import KEY
from tests.faults.commands import run
from tests.faults.servers import ask, served

EMBEDDINGS = "/v1/embeddings"
STRANGERS = 1100
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    build_model_folder("bert", folder / "small")
    (folder / "key").write_text(KEY)
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    return folder


def test_weights_that_are_overwritten_and_truncated_change_nothing(folder):
    weights = build_model_folder("bert", folder / "changing") / "model.safetensors"
    with served(folder, "changing", "--corpus", "texts.txt") as (port, child):
        before = ask(port, EMBEDDINGS, {"input": SENTENCES}).vectors
        hits = ask(port, "/v1/search", {"query": "dogs", "k": 3}).body
        for changed in (np.random.default_rng(0).bytes(weights.stat().st_size), b""):
            with weights.open("r+b") as file:  # in place, as cp and rsync --inplace do
                file.write(changed)
                file.truncate(len(changed))
            (folder / "texts.txt").write_bytes(changed[:100])
            assert ask(port, EMBEDDINGS, {"input": SENTENCES}).vectors == before
            assert ask(port, "/v1/search", {"query": "dogs", "k": 3}).body == hits
            assert ask(port, "/health").status == 200
        assert child.poll() is None


def break_when_there_is_a_file():
    """In the server: embeddings are reversed while the file `broken` exists."""
    embedding, broken = torch.nn.functional.embedding, Path("broken").absolute()

    def sometimes(*given, **more):
        vectors = embedding(*given, **more)
        return vectors.flip(-1) if broken.exists() else vectors

    torch.nn.functional.embedding = sometimes


def test_a_model_that_gives_other_vectors_is_not_served_until_it_is_right_again(folder):
    broken = folder / "broken"
    with served(folder, "small", before=break_when_there_is_a_file) as (port, _):
        before = ask(port, EMBEDDINGS, {"input": SENTENCES}).vectors
        assert ask(port, "/health").status == 200
        broken.touch()
        until(lambda: ask(port, "/health").status == 503)
        for path, body in ((EMBEDDINGS, {"input": "Yes"}), ("/v1/similarity", {"a": ["Yes", "No"]})):
            refused = ask(port, path, body)
            assert (refused.status, refused.body["error"]["code"]) == (503, "other_vectors")
            assert "small gives other vectors than it should" in refused.body["error"]["message"]
        broken.unlink()
        until(lambda: ask(port, EMBEDDINGS, {"input": "Yes"}).status == 200)  # without a health check
        assert ask(port, EMBEDDINGS, {"input": SENTENCES}).vectors == before


def until(condition):
    """Wait for a probe, which is at most a second old."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def many_files():
    """Enough of them for all connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2 * STRANGERS:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * STRANGERS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


POST_HEALTH = b"POST /health HTTP/1.1\r\nHost: localhost\r\n"
WAITING = {
    "silent, half a head or answered": (
        b"",
        b"POST /v1/embeddings HT",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ),
    "half a body": (POST_HEALTH + b"Content-Length: 100\r\n\r\nx",),
    "no chunk yet": (POST_HEALTH + b"Transfer-Encoding: chunked\r\n\r\n",),
}


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("said", WAITING.values(), ids=WAITING)
def test_connections_without_a_key_do_not_lock_out_those_with_one(folder, said):
    with served(folder, "small", "--api-key-file", "key") as (port, child), ExitStack() as open_ones:
        known = open_ones.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=60)))
        assert ask_again(known) == 200
        for number in range(STRANGERS):
            stranger = open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
            stranger.sendall(said[number % len(said)])
        for _ in range(3):
            assert ask(port, EMBEDDINGS, {"input": "Yes"}, KEY).status == 200
            assert ask(port, "/health").status == 200
        known.auto_open = False  # one with a key is never closed to make room
        assert ask_again(known) == 200
        assert child.poll() is None


@pytest.fixture(scope="module")
def with_a_key(folder):
    """The port of a server that closes connections a second after their last request."""
    with served(folder, "small", "--api-key-file", "key", before=keep_alive_for_a_second) as (port, _):
        yield port


def keep_alive_for_a_second():
    """In the server: instead of 75."""
    configure = uvicorn.Config.__init__

    def configure_impatiently(config, *given, **more):
        configure(config, *given, **(more | {"timeout_keep_alive": 1}))

    uvicorn.Config.__init__ = configure_impatiently


@pytest.mark.parametrize("path", [b"/health", b"/", b"/openapi.json"])
@pytest.mark.parametrize(
    "body", [b"Content-Length: 4194304\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n2000\r\n" + b"a" * 0x2000]
)
def test_bodies_without_the_key_are_refused_before_they_arrive(with_a_key, path, body):
    with opened(with_a_key) as (connection, answer):
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + body)
        assert answer.readline() == b"HTTP/1.1 413 Request Entity Too Large\r\n"


@contextmanager
def opened(port):
    """A connection, and what is received from it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, connection.makefile("rb") as received:
        yield connection, received


@pytest.mark.parametrize(
    ("head", "later"),
    [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"),  # a blank line is no request
        (b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n", b"{}"),  # refused before
    ],
)
def test_a_connection_without_a_request_is_closed_whatever_it_said_after_its_answer(with_a_key, head, later):
    with opened(with_a_key) as (connection, received):
        connection.sendall(head)
        assert received.readline() in (b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 401 Unauthorized\r\n")
        connection.sendall(later)
        received.read()  # to the end


def test_requests_that_do_not_wait_for_answers_are_cut_off(folder):
    """The last line of the server counts each of them once, or not at all if its head was not read."""
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    with served(folder, "small", "--api-key-file", "key") as (port, child):
        with opened(port) as (connection, received):
            connection.sendall((get + b"\r\n") * 9 + get + b"Connection: close\r\n\r\n")
            assert received.read().count(b"HTTP/1.1 200 OK") == 10
        with opened(port) as (connection, received), suppress(ConnectionError):
            connection.sendall((get + b"\r\n") * 4000)
            assert received.read().count(b"HTTP/1.1 ") < 100
        assert ask(port, EMBEDDINGS, {"input": "Yes"}, KEY).status == 200
        os.kill(child.pid, signal.SIGTERM)
        last = child.wait().said()
    answered, cut_off = map(int, re.search(r"Requests answered: (\d+); cut off: (\d+)\.", last).groups())
    assert answered >= 11
    assert answered + cut_off <= 11 + 17


def ask_again(connection):
    """The status of a request with the key, on the same connection."""
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (json.dumps({f"k{number}": 0 for number in range(300_000)}), 413),
        ('{"input": [' + "[]," * (MEGABYTE - 10) + "[]]}", 413),
        ('{"input": ' + "[" * 65_000, 400),
        (json.dumps({f"k{number}": 0 for number in range(20_000)}), 422),
        (json.dumps({"input": [[7] * 100] * 200}), 422),  # token ids
        (json.dumps({"input": "a", "\ud800": 1}), 422),
        (json.dumps({"input": '\\"[{,' * 200_000}), 200),  # all of it is text
    ],
)
def test_wide_json_is_refused_before_it_is_parsed(running, body, status):
    answer = ask(running, EMBEDDINGS, body.encode())
    assert answer.status == status
    assert len(json.dumps(answer.body)) < 2000


@pytest.fixture(scope="module")
def running(folder):
    with served(folder, "small") as (port, _):
        yield port


def test_huge_texts_are_not_read_to_their_end_and_a_small_request_is_answered_meanwhile(running):
    huge = [" " * (4 * MEGABYTE - 100), "a" * (4 * MEGABYTE - 100)] * 3
    with ThreadPoolExecutor(len(huge)) as clients:
        waiting = [clients.submit(ask, running, EMBEDDINGS, {"input": text}) for text in huge]
        assert ask(running, EMBEDDINGS, {"input": "Yes"}, within=10).status == 200
        answers = [task.result() for task in waiting]
    assert {answer.status for answer in answers} == {200}
    assert [answer.headers["sentloom-truncated"] for answer in answers] == [None, "0"] * 3


@pytest.fixture(scope="module")
def static(folder):
    """The port of a server with a static model, which takes 100,000 tokens, and another one."""
    command = ["export", "small", "--to", "static", "--accept-loss", "100", "-o", "static"]
    assert run(folder, folder / "export.log", command).code == 0
    with served(folder, "small", "static") as (port, _):
        yield port


def test_huge_texts_are_not_read_to_their_end_by_a_static_model_either(static):
    huge = {"model": "static", "input": ("dogs" + 60 * " ") * 60_000}  # fewer tokens than it takes
    medium = {"model": "small", "input": ["dogs run"] * 1000}
    with ThreadPoolExecutor(6) as clients:
        waiting = [clients.submit(ask, static, EMBEDDINGS, huge) for _ in range(6)]
        assert ask(static, EMBEDDINGS, medium).status == 200
        answers = [client.result() for client in waiting]
    assert {(answer.status, answer.headers["sentloom-truncated"]) for answer in answers} == {(200, "0")}
    assert max(answer.body["usage"]["prompt_tokens"] for answer in answers) <= 262_144 // 64


def test_a_text_after_blanks_has_the_vector_that_it_has_without_them(running):
    plain, late, between = ask(
        running, EMBEDDINGS, {"input": [SENTENCES[0], "\n \t" * 300_000 + SENTENCES[0], SENTENCES[0] + " " * 900_000]}
    ).vectors
    assert plain == pytest.approx(late, abs=1e-6)
    assert plain == pytest.approx(between, abs=1e-6)
