"""A real server on loopback, in a thread: slow clients, hostile bytes, and shutdown."""

import contextlib
import json
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import pytest
import uvicorn

from sentloom.errors import InputError
from sentloom.serving.app import build_app
from sentloom.serving.server import Crowd, DrainingServer, ServedProtocol, bind
from sentloom.serving.service import Key, ServiceLimits
from tests.serving.asking import post


class Impatient(ServedProtocol):
    head_seconds = 0.3
    body_seconds = 1.0
    head_bytes = 2000


@contextlib.contextmanager
def serving(service, crowd=None):
    """A running server: its port, and itself."""
    started = threading.Event()
    config = uvicorn.Config(
        build_app(service),
        http=partial(Impatient, service, crowd or Crowd()),
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
    )
    server, listener = DrainingServer(config, service, started.set), bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    assert started.wait(60)
    try:
        yield listener.getsockname()[1], server
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
    assert not thread.is_alive()


def raw(port, *parts, pause=0.0):
    """What the server answers to bytes, until it closes the connection or 20 s have passed."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        with contextlib.suppress(ConnectionError):
            while found := connection.recv(65536):
                received += found
        return received


def request(body, close=True):
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + (b"Connection: close\r\n" if close else b"") + b"\r\n" + body


def test_a_request_over_a_socket(make_service):
    with serving(make_service()) as (port, _):
        answer = raw(port, request(b'{"input": "Yes"}'))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["data"][0]["embedding"]) == 32


def test_hostile_connections_end_and_neighbours_are_answered(make_service):
    hostile = {
        "half a head": [b"POST /v1/embeddings HTTP/1.1\r\nHost: local"],
        "nothing": [b""],
        "an endless head": [b"GET / HTTP/1.1\r\nX: " + b"a" * 5000],
        "a large head in one piece": [b"GET / HTTP/1.1\r\nX: " + b"a" * 5000 + b"\r\n\r\n"],
        "a large address": [b"GET /?" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n"],
        "no HTTP": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n"],
        "a negative length": [b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"],
        "a second head": [request(b'{"input": "Yes"}', close=False), b"GET / HT"],
    }
    with serving(make_service()) as (port, _), ThreadPoolExecutor(len(hostile)) as clients:
        attacks = {name: clients.submit(raw, port, *parts) for name, parts in hostile.items()}
        assert raw(port, request(b'{"input": "Yes"}')).startswith(b"HTTP/1.1 200")
        answers = {name: attack.result() for name, attack in attacks.items()}
        assert raw(port, request(b'{"input": "Yes"}')).startswith(b"HTTP/1.1 200")
    statuses = {name: answer[9:12] for name, answer in answers.items()}
    assert statuses["half a head"] == statuses["nothing"] == b""  # closed when their time was over
    assert statuses["a second head"] == b"200"
    refused = ("an endless head", "a large head in one piece", "a large address", "no HTTP", "a negative length")
    assert {statuses[name] for name in refused} == {b"400"}


def test_a_declared_body_that_is_too_large_is_refused_with_413_and_the_connection_stays(make_service):
    too_large = b'{"input": "' + b"a" * (5 << 20) + b'"}'
    with serving(make_service()) as (port, _):
        received = raw(port, request(too_large, close=False) + request(b'{"input": "Yes"}'))
    assert received.startswith(b"HTTP/1.1 413")
    assert b"HTTP/1.1 200 OK" in received


def test_a_client_that_hangs_up_is_dropped_from_the_queue(make_service, free):
    service = make_service()
    body = request(b'{"input": ["Yes", "No"]}')
    with serving(service) as (port, _), ThreadPoolExecutor(2) as clients:
        busy = []
        for at in range(2):  # both workers
            busy.append(clients.submit(raw, port, body))
            wait_until(lambda at=at: service.batcher.running == at + 1)
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        for connection in waiting:
            connection.sendall(body)
        tokens = service.models["small"].tokenize(["Yes", "No"], "symmetric").tokens
        wait_until(lambda: service.batcher.waiting_tokens == 4 * tokens)
        for connection in waiting:
            connection.close()
        wait_until(lambda: service.in_flight == 2)
        assert service.batcher.waiting_tokens == 0
        free.set()
        assert all(request.result().startswith(b"HTTP/1.1 200") for request in busy)
    assert service.batcher.counts.dropped == 4
    assert service.batcher.counts.texts == 4


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_on_a_signal_all_accepted_requests_are_answered_and_new_ones_refused(make_service, executor):
    service, free = make_service(), threading.Event()
    with serving(service) as (port, server), ThreadPoolExecutor(20) as clients:
        blocked = [executor.submit(free.wait, 60) for _ in range(2)]
        accepted = [clients.submit(raw, port, request(b'{"input": "Yes"}')) for _ in range(20)]
        wait_until(lambda: service.in_flight == 20)
        server.handle_exit(signal.SIGTERM, None)
        refused = raw(port, request(b'{"input": "late"}', close=False))
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"connection: close" in refused
        free.set()
        assert [request.result()[:12] for request in accepted] == [b"HTTP/1.1 200"] * 20
        wait_until(lambda: server.should_exit)
    assert all(request.result() for request in blocked)


def test_a_used_port_is_an_ordinary_error():
    with bind("127.0.0.1", 0) as first, pytest.raises(InputError, match="Address already in use"):
        bind("127.0.0.1", first.getsockname()[1])


def test_an_address_of_another_machine_is_an_ordinary_error():
    with pytest.raises(InputError, match="cannot be used"):
        bind("192.0.2.1", 0)


def test_answers_in_process_and_over_a_socket_are_the_same(make_service):
    service = make_service()
    with serving(service) as (port, _):
        over_socket = httpx2.post(f"http://127.0.0.1:{port}/v1/embeddings", json={"input": ["Yes", "No"]}).json()
    assert over_socket == post(make_service(), "/v1/embeddings", {"input": ["Yes", "No"]}).json()


def dripping(key=b""):
    """A GET whose body comes by the byte."""
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n" + key + b"\r\n"
    return [head, *[b"a"] * 40]


def test_a_body_that_drips_is_ended_whatever_the_method_and_whether_it_was_refused(make_service):
    limits = ServiceLimits(body_seconds=0.5)
    with serving(make_service(limits=limits)) as (port, _):
        assert drip(port, dripping()).startswith(b"HTTP/1.1 408")
    with serving(make_service(limits=limits, key=Key("0123456789abcdef"))) as (port, _):
        assert drip(port, dripping()).startswith(b"HTTP/1.1 401")


def drip(port, parts):
    """What was received before the server closed the connection, which it does before the last part."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        received = b""
        for part in parts:
            try:
                connection.sendall(part)
                connection.settimeout(0.1)
                while found := connection.recv(65536):
                    received += found
                return received
            except TimeoutError:
                continue
            except ConnectionError:
                return received
    pytest.fail("the connection is still open")


@contextlib.contextmanager
def unread(port):
    """A client that asks for megabytes and does not read them."""
    body = json.dumps({"a": ["Yes"] * 1000}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(request(body).replace(b"/v1/embeddings", b"/v1/similarity"))
        yield connection


def test_an_answer_that_is_not_read_is_cut_off_and_counted(make_service):
    service = make_service(limits=ServiceLimits(answer_seconds=0.5))
    with serving(service) as (port, _), unread(port):
        wait_until(lambda: service.cut_off == 1)
        assert raw(port, request(b'{"input": "Yes"}')).startswith(b"HTTP/1.1 200")
    assert (service.answered, service.cut_off) == (1, 1)


def test_on_a_signal_an_answer_that_is_not_read_holds_nothing_up_for_longer_than_the_limit(make_service, monkeypatch):
    monkeypatch.setattr("sentloom.serving.server.SHUTDOWN_SECONDS", 2)
    service = make_service()
    with serving(service) as (port, server), unread(port):
        wait_until(lambda: service.answered == 1)  # it is written, but most of it waits in the server
        server.handle_exit(signal.SIGTERM, None)
        wait_until(lambda: service.cut_off == 1)
    assert service.answered == 0


def test_those_without_a_key_make_room_for_each_other_and_for_health_checks(make_service):
    key = b"Authorization: Bearer 0123456789abcdef\r\n"
    models = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with (
        contextlib.ExitStack() as connections,
        serving(make_service(key=Key("0123456789abcdef")), Crowd(5, 3, 3)) as (
            port,
            _,
        ),
    ):

        def say(text):
            connection = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            connection.sendall(text)
            return connection, connection.recv(65536)[9:12]

        strangers = [say(models % b"") for _ in range(3)]
        known = [say(models % key) for _ in range(3)]
        assert [status for _, status in strangers] == [b"401"] * 3
        assert [status for _, status in known] == [b"200", b"200", b"503"]  # the third is one too many
        assert say(health)[1] == b"200"
        with contextlib.suppress(ConnectionResetError):
            while strangers[0][0].recv(65536):  # what is left of its answer; then it is closed, as the oldest
                pass
