"""A writer behind an endpoint: what it is asked, what is kept in an outage, and where the key goes."""

import math
import re

import pytest

from sentloom.errors import InputError
from sentloom.writing.answers import ANSWERS, NO_CHANCE, Answers
from sentloom.writing.chat import EndpointError, TokenLimit, chance_of_true, most_tokens
from sentloom.writing.endpoint import KEY, Endpoint, EndpointOptions, _tidy, is_endpoint, requests_per_text
from sentloom.writing.filters import Filtering
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, WritingTask, synthesize
from sentloom.writing.writer import SourceText, Written, prompts_for
from tests.writing.chat_server import chat_server, reset, status, tokens_of
from tests.writing.ledgers import raw_texts, rows_of

(ENTAILMENT,) = prompts_for(("entailment",), "English")["entailment"]
SOURCES = [SourceText(row, f"Text number {row}.") for row in range(20)]
TASK = WritingTask(writer_model="small")
QUICK = {"execution": Execution(block=4, requests=3), "filtering": Filtering(threshold=0), "show_progress": False}
SECRET = "sk-very-secret-0123"


def endpoint(server, folder, sampling=None, **options):
    return Endpoint(EndpointOptions(server.url, "small", **options), sampling or Sampling(), folder, first_wait=0.01)


def test_addresses():
    assert is_endpoint("https://api.example.org/v1")
    assert is_endpoint("http://localhost:8080/v1")
    assert not is_endpoint("owner/name")
    options = EndpointOptions("https://api.example.org:8443/v1/", "small")
    assert (options.host, options.identity) == ("api.example.org:8443", "https://api.example.org:8443/v1 small")


def test_what_is_sent(tmp_path):
    with chat_server() as server:
        writer = endpoint(server, tmp_path, Sampling(top_p=0.8, temperature=0.7, length=21, seed=5))
        (answer,) = writer.write([SourceText(3, "It rains.", 1)], "entailment", ENTAILMENT)
        (body,) = server.bodies
    assert answer.text.startswith("what follows from It rains.")
    assert body["messages"] == ENTAILMENT.messages("It rains.")
    assert (body["model"], body["max_tokens"], body["temperature"], body["top_p"]) == ("small", 21, 0.7, 0.8)
    assert 0 <= body["seed"] < 2**31
    assert "Authorization" not in server.headers[0]


def test_a_server_of_ours_gets_no_key_and_short_texts_and_is_known_by_its_model(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY, SECRET)
    with chat_server() as server:
        writer = endpoint(server, tmp_path, own="abc", longest=7)
        writer.write([SourceText(3, "It rains all day.")], "entailment", ENTAILMENT)
        (body,) = server.bodies
    assert body["messages"] == ENTAILMENT.messages("It rain")
    assert "Authorization" not in server.headers[0]
    assert EndpointOptions("http://127.0.0.1:1/v1", "small", own="abc").identity == "abc"


def test_seeds_differ_by_row_and_number_and_greedy_is_cold(tmp_path):
    with chat_server() as server:
        writer = endpoint(server, tmp_path, Sampling(greedy=True))
        writer.write([SourceText(0, "a"), SourceText(0, "a", 1), SourceText(1, "a")], "entailment", ENTAILMENT)
        assert len({body["seed"] for body in server.bodies}) == 3
        assert {(body["temperature"], body.get("top_p")) for body in server.bodies} == {(0.0, None)}


def test_many_requests_at_a_time_and_answers_in_order(tmp_path):
    with chat_server(seconds=0.05) as server:
        answers = endpoint(server, tmp_path, requests=5).write(SOURCES, "entailment", ENTAILMENT)
        assert [f"Text number {row}." in answer.text for row, answer in enumerate(answers)] == [True] * 20
        assert server.busiest == 5


def test_judgements_are_true_or_not(tmp_path):
    with chat_server() as server:
        chances = endpoint(server, tmp_path).judge([("It rains.", "this follows"), ("It rains.", "It snows.")])
    assert chances.tolist() == [1.0, 0.0]


def positions(first, *others):
    """Log-probabilities of an answer of one token: the token that was written, and others that were not."""
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in (first, *others)]
    return {"content": [{**top[0], "top_logprobs": top}]}


@pytest.mark.parametrize(
    ("stated", "chance"),
    [
        (positions(("True", 0.6), ("False", 0.2), ("It", 0.2)), 0.75),
        (positions((" false", 0.9), (" tr", 0.1)), 0.1),
        (positions(("true", 0.5)), 1.0),
        (positions(("True", 0.25), ("true", 0.25), ("f", 0.5)), 0.5),
        (positions(("Maybe", 0.9), ("true", 0.1)), None),
        ({"content": []}, None),
        ({"content": [{"token": "true", "logprob": "high"}]}, None),
        (None, None),
        ("text", None),
    ],
)
def test_a_judgement_is_the_chance_of_true_against_false(stated, chance):
    assert chance_of_true(stated) == (chance if chance is None else pytest.approx(chance))


def test_judgements_are_token_probabilities_where_the_server_states_them(tmp_path):
    pairs = [("It rains.", "this follows"), ("It rains.", "It snows.")]
    with chat_server(logprobs=lambda body: positions(("True", 0.6), ("False", 0.2))) as server:
        assert endpoint(server, tmp_path).judge(pairs).tolist() == pytest.approx([0.75, 0.75])
        assert all(body["top_logprobs"] == 5 for body in server.bodies)
        assert endpoint(server, tmp_path).judge(pairs).tolist() == pytest.approx([0.75, 0.75])  # kept in the ledger
        assert len(server.bodies) == 2
        endpoint(server, tmp_path).write(SOURCES[:1], "entailment", ENTAILMENT)
        assert "logprobs" not in server.bodies[-1]
    assert NO_CHANCE not in Answers(tmp_path / ANSWERS).unusable


def test_a_server_that_refuses_or_ignores_token_probabilities_gives_hard_judgements_and_they_are_counted(tmp_path):
    pairs = [("It rains.", "this follows"), ("It rains.", "It snows.")]
    with chat_server(faults=[status(400)]) as server:
        judge = endpoint(server, tmp_path, requests=1)
        assert judge.judge(pairs).tolist() == [1.0, 0.0]
        assert not any("logprobs" in body for body in server.bodies)  # it is not asked again
    assert Answers(tmp_path / ANSWERS).unusable == {NO_CHANCE: 2}


def test_equal_requests_are_sent_once(tmp_path):
    pairs = [("It rains.", "this follows"), ("It rains.", "It snows."), ("It rains.", "this follows")]
    with chat_server() as server:
        assert endpoint(server, tmp_path).judge(pairs).tolist() == [1.0, 0.0, 1.0]
        assert endpoint(server, tmp_path).judge([]).tolist() == []
    assert len(server.bodies) == 2


def test_answers_are_tidied(tmp_path):
    with chat_server(answer=lambda body: '\n "What rains?" \nBecause it rains.') as server:
        (answer,) = endpoint(server, tmp_path).write(SOURCES[:1], "query", ENTAILMENT)
    assert answer.text == "What rains?"


def test_an_outage_loses_nothing_that_was_answered(tmp_path):
    (tmp_path / "whole").mkdir()
    with chat_server() as server:
        expected = endpoint(server, tmp_path / "whole").write(SOURCES, "entailment", ENTAILMENT)
    with chat_server() as server:
        endpoint(server, tmp_path, requests=1).write(SOURCES[:7], "entailment", ENTAILMENT)
        server.faults += [status(500), reset] * 50
        with pytest.raises(EndpointError, match="Run the same command again to resume"):
            endpoint(server, tmp_path, requests=2).write(SOURCES, "entailment", ENTAILMENT)
        server.faults.clear()
        server.bodies.clear()
        again = endpoint(server, tmp_path).write(SOURCES, "entailment", ENTAILMENT)
        assert len(server.bodies) == 13  # the other seven were answered before
    assert again == expected


def test_requests_without_an_answer_count_in_later_runs(tmp_path):
    with chat_server(faults=[reset]) as server:
        endpoint(server, tmp_path).write(SOURCES[:1], "entailment", ENTAILMENT)
    (body,) = server.bodies
    assert Answers(tmp_path / ANSWERS).usage.total == most_tokens(body) + server.tokens
    with chat_server(faults=[status(500)]) as server:  # nobody bills for that
        endpoint(server, tmp_path).write(SOURCES[1:2], "entailment", ENTAILMENT)
    assert Answers(tmp_path / ANSWERS).usage.total == most_tokens(body) + 2 * server.tokens


def test_a_ledger_from_an_endpoint_resumes_and_counts(tmp_path):
    raw, said = raw_texts(10), []
    with chat_server() as server:
        summary = synthesize(raw, server.url, tmp_path / "whole", task=TASK, **QUICK)
        whole = rows_of(tmp_path / "whole")
        assert summary.endpoint_tokens == server.tokens
        read = {kind: sum(row["tokens_read"] for row in whole if row["kind"] == kind) for kind in summary.kinds}
        assert {kind: counts.tokens_read for kind, counts in summary.kinds.items()} == read
        assert {counts.tokens_written for counts in summary.kinds.values()} == {10 * 7}
        assert len(server.bodies) == 10 * 2 * 2  # written and judged
        server.bodies.clear()
        synthesize(raw, server.url, tmp_path / "whole", task=TASK, **QUICK)
        assert server.bodies == []
        server.faults += [None] * 9 + [status(401)] * 8
        with pytest.raises(EndpointError, match="it answered 401"):
            synthesize(raw, server.url, tmp_path / "cut", task=TASK, **QUICK)
        server.faults.clear()
        paid = len(server.bodies)
        assert paid > 0
        synthesize(raw, server.url, tmp_path / "cut", task=TASK, log=said.append, **QUICK)
        assert len(server.bodies) == 40  # no answer was asked for twice
    assert rows_of(tmp_path / "cut") == whole
    assert sum(row["tokens_written"] for row in whole) == 20 * 7
    assert {row["writer"] for row in whole} == {f"{server.url} small"}
    (line,) = said
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert line.startswith("sending ")
    assert f"texts to {host} (small): " in line


def test_the_limit_of_tokens_holds_over_runs(tmp_path):
    raw = raw_texts(10)
    task = WritingTask(writer_model="small", max_tokens=2000)
    with chat_server() as server:
        for _ in range(2):
            with pytest.raises(TokenLimit, match=r"(?s)tokens are used.*Raise max_tokens"):
                synthesize(raw, server.url, tmp_path, task=task, **QUICK)
            assert 0 < server.tokens <= 2000
        synthesize(raw, server.url, tmp_path, task=TASK, **QUICK)
        assert len(server.bodies) == 40


def test_the_key_is_sent_and_stored_nowhere(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv(KEY, SECRET)
    said = []
    with chat_server(faults=[status(500), None, status(403)]) as server:
        with pytest.raises(EndpointError) as refused:
            synthesize(raw_texts(3), server.url, tmp_path, task=TASK, log=said.append, **QUICK)
        synthesize(raw_texts(3), server.url, tmp_path, task=TASK, log=said.append, **QUICK)
    assert {one["Authorization"] for one in server.headers} == {f"Bearer {SECRET}"}
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) > 4
    assert not any(SECRET.encode() in one for one in stored)
    assert all(SECRET not in row["writer"] + row["prompt"] for row in rows_of(tmp_path))
    assert SECRET not in str(refused.value) + "".join(said) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("url", "model", "said"),
    [
        ("https://example.org/v1", None, "needs a model.*\n.*writer_model='NAME'"),
        (f"https://me:{SECRET}@example.org/v1", "m", "more than host and path"),
        (f"https://example.org/v1?key={SECRET}", "m", "more than host and path"),
        ("http://example.org/v1", "m", "unencrypted"),
    ],
)
def test_addresses_that_would_leak_are_refused(monkeypatch, url, model, said):
    monkeypatch.setenv(KEY, SECRET)
    with pytest.raises(InputError, match=f"(?i){said}") as refused:
        EndpointOptions(url, model)
    assert SECRET not in str(refused.value)


def test_an_endpoint_is_not_for_ray_and_its_options_not_for_models(tmp_path):
    ray = Execution(engine="ray")
    with chat_server() as server, pytest.raises(InputError, match="the writer is an endpoint"):
        synthesize(raw_texts(3), server.url, tmp_path, None, None, ray, task=TASK, show_progress=False)
    with pytest.raises(InputError, match="writer_model can only be given for an endpoint"):
        synthesize(raw_texts(3), "folder", tmp_path, task=TASK, show_progress=False)


def test_how_often_an_endpoint_is_asked():
    assert requests_per_text(["query"]) == 1
    assert requests_per_text(["entailment", "contradiction"], candidates=3) == 12  # each is judged once
    assert requests_per_text(["paraphrase"]) == 3  # judged in both directions


def test_the_cost_is_announced_counted_and_remembered(tmp_path):
    raw, said = raw_texts(10), []
    paid = QUICK | {"execution": Execution(block=4, price_read=3_000, price_written=15_000)}
    with chat_server() as server:
        summary = synthesize(raw, server.url, tmp_path, task=TASK, log=said.append, **paid)
    read, written = (sum(side) for side in zip(*map(tokens_of, server.bodies), strict=True))
    assert summary.endpoint_cost == pytest.approx(0.003 * read + 0.015 * written)
    again = synthesize(raw, server.url, tmp_path, task=TASK, **QUICK)  # without prices; nothing is asked
    assert again.endpoint_cost == summary.endpoint_cost
    (line,) = said
    tokens, cost = re.search(r"about ([\d,]+) tokens, about ([\d.]+) at your prices", line).groups()
    assert 0.003 * int(tokens.replace(",", "")) < float(cost) < 0.015 * int(tokens.replace(",", ""))
    with pytest.raises(InputError, match="a price can only be given for an endpoint"):
        synthesize(raw, "folder", tmp_path / "other", **paid)


def test_tokens_of_other_ledgers_count_towards_the_limit(tmp_path):
    with chat_server() as server, pytest.raises(TokenLimit, match="1,990 of 2,000 tokens are used"):
        endpoint(server, tmp_path, max_tokens=2000, spent=1990).write(SOURCES, "entailment", ENTAILMENT)
    assert server.bodies == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Question: What is rain?", "What is rain?"),
        ('\n"What is rain?"\nIt is water.', "What is rain?"),
        ("<think>The user wants\na question.</think>\nquestion:  What is rain?", "What is rain?"),
        ("<think>The user wants", ""),
        ("What is a question: a sentence?", "What is a question: a sentence?"),
    ],
)
def test_what_is_around_an_answer_is_left_out(answer, expected):
    assert _tidy(Written(answer, True, 1, 2), "Question") == Written(expected, True, 1, 2)
