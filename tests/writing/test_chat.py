"""Requests to a real server with faults: all are repeated until answered, none exceeds the limit of tokens."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sentloom.writing.chat import Chat, EndpointError, TokenLimit, most_tokens, parse_answer, retry_after
from tests.writing.chat_server import chat_server, huge, malformed, reset, silent, status, truncated


def body(text="It rains.", number=0, longest=9):
    return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": longest, "seed": number}


@pytest.fixture
def client():
    with ExitStack() as stack:
        yield lambda server, **settings: stack.enter_context(
            Chat(f"{server.url}/chat/completions", **{"first_wait": 0.01, "patience": 0.5, **settings})
        )


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(503),
        status(524),
        status(429),
        reset,
        truncated,
        silent(1.0),
        huge,
        malformed(b"<html>busy</html>"),
        malformed(b'{"choices": []}'),
        malformed(b'{"choices": [{"message": "text"}]}'),
        malformed(b"[" * 100_000),
    ],
    ids=("500", "503", "524", "429", "reset", "truncated", "silent", "huge", "html", "empty", "text", "nested"),
)
def test_a_fault_is_tried_again_until_the_answer_comes(fault, client):
    with chat_server(faults=[fault, fault]) as server:
        answer = client(server).ask(body())
        assert answer.text.startswith("what follows from It rains.")
        assert answer.finished
        assert (answer.tokens_read, answer.tokens_written) == (2, 7)
        assert len(server.times) == 3


def test_waits_grow_and_the_last_attempt_is_reported(client):
    with chat_server(faults=[status(500)] * 20) as server:
        with pytest.raises(EndpointError, match=r"127.0.0.1:\d+: 8 attempts failed, the last because it answered 500"):
            client(server, first_wait=0.005).ask(body())
        assert len(server.times) == 8
        waits = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
        assert waits[-1] > 0.5 * 0.005 * 2**6
        assert sum(waits) < 5


def test_retry_after_holds_all_requests_back(client):
    with chat_server(faults=[status(429, Retry_After="0.6")]) as server:
        chat = client(server)
        first = threading.Thread(target=chat.ask, args=(body(),))
        first.start()
        while not server.times:
            time.sleep(0.005)
        time.sleep(0.1)
        chat.ask(body("Other."))
        first.join()
        assert len(server.times) == 3
        assert min(server.times[1:]) - server.times[0] >= 0.55


def test_a_server_that_asks_for_hours_is_not_waited_for(client):
    with (
        chat_server(faults=[status(429, Retry_After="7200")]) as server,
        pytest.raises(EndpointError, match="it asks to wait 7,200 seconds"),
    ):
        client(server).ask(body())


@pytest.mark.parametrize("code", [400, 401, 403, 404, 301])
def test_a_refusal_is_final_and_says_why(code, client):
    with chat_server(faults=[status(code, Location="http://127.0.0.1:9/")]) as server:
        with pytest.raises(EndpointError, match=rf"(?s)it answered {code}.*Check the address"):
            client(server, key="secret-key").ask(body())
        assert len(server.times) == 1


def test_the_key_is_not_shown_even_if_the_server_repeats_it(client):
    with chat_server(faults=[malformed(b'{"error": "no such key: secret-key"}', 401)]) as server:
        with pytest.raises(EndpointError, match=r"no such key: \*\*\*") as refused:
            client(server, key="secret-key").ask(body())
        assert "secret-key" not in str(refused.value)


def test_nobody_listens(client):
    with chat_server() as server:
        pass
    with pytest.raises(EndpointError, match=r"network error \(ConnectError\)"):
        client(server, first_wait=0.001).ask(body())


def test_the_limit_of_tokens_is_never_exceeded(client):
    """The server counts 4 tokens of the text and 7 of the answer; before it has, each request may cost far more."""
    with chat_server(seconds=0.01) as server:
        chat = client(server, most_tokens=600)
        with ThreadPoolExecutor(8) as executor:
            asked = [executor.submit(chat.ask, body("One two three four.", number)) for number in range(80)]
        stopped = [request for request in asked if isinstance(request.exception(), TokenLimit)]
        assert len(stopped) + len(server.bodies) == 80
        assert 400 < server.tokens <= 600
        assert "of 600 tokens are used" in str(stopped[-1].exception())
        assert server.busiest > 1


def test_tokens_of_earlier_runs_count(client):
    with chat_server() as server:
        with pytest.raises(TokenLimit):
            client(server, most_tokens=600, used=590).ask(body())
        assert server.bodies == []


def test_a_request_that_may_have_been_charged_counts_as_if_it_was(client):
    with chat_server(faults=[truncated, status(500)]) as server:
        most = most_tokens(body())
        chat = client(server, most_tokens=2 * most)
        chat.ask(body())
        with pytest.raises(TokenLimit, match=rf"{most + 9:,} of {2 * most:,} tokens are used"):
            chat.ask(body())


def test_a_server_that_does_not_count_is_charged_the_most(client):
    with chat_server(usage=False) as server:
        answer = client(server).ask(body())
        assert answer.tokens_read + answer.tokens_written == most_tokens(body()) == 9 + 64 + 9


def test_after_a_stop_there_is_one_attempt(client):
    with chat_server(faults=[status(500)] * 3) as server:
        chat = client(server)
        chat.stop()
        with pytest.raises(EndpointError, match="1 attempts failed"):
            chat.ask(body())
        assert len(server.times) == 1


def test_an_answer_that_was_cut_is_not_finished():
    cut, _ = parse_answer(b'{"choices": [{"message": {"content": "Where is"}, "finish_reason": "length"}]}')
    assert not cut.finished
    empty, counted = parse_answer(b'{"choices": [{"message": {"content": null}}], "usage": null}')
    assert (empty.text, empty.finished, empty.tokens_read, counted) == ("", True, 0, True)


def test_retry_after_as_number_and_date():
    assert retry_after("2.5") == 2.5
    assert retry_after("-3") == 0
    assert retry_after(None) is None
    assert retry_after("soon") is None
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 85 < retry_after(soon) <= 90
