"""A running server is attacked: too many connections, wide JSON, huge texts, and weights that change under it."""

import json
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.attacks import KEY
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


@pytest.mark.usefixtures("many_files")
def test_connections_without_a_key_do_not_lock_out_those_with_one(folder):
    """Some say nothing, some half a head, some had an answer and stay."""
    said = (b"", b"POST /v1/embeddings HT", b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
        answers = [one.result() for one in waiting]
    assert {answer.status for answer in answers} == {200}
    assert [answer.headers["sentloom-truncated"] for answer in answers] == [None, "0"] * 3


def test_a_text_after_blanks_has_the_vector_that_it_has_without_them(running):
    plain, late, between = ask(
        running, EMBEDDINGS, {"input": [SENTENCES[0], "\n \t" * 300_000 + SENTENCES[0], SENTENCES[0] + " " * 900_000]}
    ).vectors
    assert plain == pytest.approx(late, abs=1e-6)
    assert plain == pytest.approx(between, abs=1e-6)
