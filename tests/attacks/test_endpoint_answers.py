"""Bad answers of an endpoint: they are counted and asked for again, and no ledger is lost to them."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.attacks.endpoints import arguments, digest, rows, texts, unusable
from tests.writing.chat_server import chat_server, default_text, dripping, malformed

PARTS = [{"type": "text", "text": "The parcel "}, {"type": "text", "text": "is there."}]
HEAD = b"HTTP/1.1 200 OK\r\n"
NO_COMPLETION, BAD_TEXT = "no chat completion", "a text with a lone surrogate, NUL or printed list"


def saying(content: object, **usage: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}], "usage": usage or None}).encode()


@pytest.fixture(scope="module")
def untroubled(tmp_path_factory):
    """A ledger that nobody troubled."""
    from sentloom.lab import synthesize

    folder = tmp_path_factory.mktemp("untroubled")
    with chat_server() as server:
        _, _, raw, _, ledger, *options = arguments(folder, server.url)
        named = dict(zip(options[::2], options[1::2], strict=True))
        synthesize(
            raw, ledger, writer=server.url, writer_model="small", filters=named["--filters"], execution="block=2"
        )
    return folder


BAD = {
    "surrogate": (saying("half \ud83d"), BAD_TEXT),
    "surrogate in a part": (saying([{"type": "text", "text": "\udc00"}]), BAD_TEXT),
    "nul": (saying("a\0b"), BAD_TEXT),
    "printed list": (saying(str(PARTS)), BAD_TEXT),
    "number": (saying(7), NO_COMPLETION),
    "list of numbers": (saying([1] * 100_000), NO_COMPLETION),
    "image": (saying([*PARTS, {"type": "image_url", "image_url": "x"}]), NO_COMPLETION),
    "object": (saying({"type": "text", "text": "a"}), NO_COMPLETION),
    "no json": (b"<html>busy</html>", NO_COMPLETION),
    "nested": (b"[" * 100_000, NO_COMPLETION),
}


def test_bad_answers_are_counted_and_asked_for_again(sentloom, tmp_path, untroubled):
    with chat_server(faults=[malformed(content) for content, _ in BAD.values()]) as server:
        done = sentloom(*arguments(tmp_path, server.url, "block=6,requests=24"))
    assert done.returncode == 0, done.stderr
    assert texts(tmp_path) == texts(untroubled)
    assert unusable(tmp_path) == {BAD_TEXT: 4, NO_COMPLETION: 6}
    assert f"10 answers were unusable: {BAD_TEXT} (4), {NO_COMPLETION} (6)" in done.stdout


def test_a_text_in_parts_is_joined(sentloom, tmp_path):
    with chat_server(answer=lambda body: PARTS if body["seed"] else default_text(body)) as server:
        done = sentloom(*arguments(tmp_path, server.url))
    assert done.returncode == 0, done.stderr
    assert set(texts(tmp_path)) == {"The parcel is there."}
    assert unusable(tmp_path) == {}


def test_impossible_token_counts_are_ignored_and_counted(sentloom, tmp_path):
    counts = [b"99999999999", b"1e999", b"-1e999", b"-3", b"0.5", b'"7"', b"true", b"NaN", b"null"]
    counted = [
        saying("The parcel is there.", prompt_tokens=0, completion_tokens=4).replace(b"0", count) for count in counts
    ]
    with chat_server(faults=[*map(malformed, counted), malformed(saying("Here.")[:-5] + b"1e999}")]) as server:
        done = sentloom(*arguments(tmp_path, server.url))
    assert done.returncode == 0, done.stderr
    assert unusable(tmp_path) == {"token counts": 10}
    assert "10 answers had unusable token counts" in done.stdout
    assert max(row["tokens_read"] for row in rows(tmp_path)) < 10_000


def test_a_text_that_is_always_bad_does_not_end_the_run(sentloom, tmp_path):
    """A server that cuts a text in the middle of a character does so each time, if it honours the seed."""
    answer = lambda body: "\ud83d" if "Parcel 3" in str(body["messages"]) and body["seed"] else default_text(body)  # noqa: E731
    with chat_server(answer=answer) as server:
        done = sentloom(*arguments(tmp_path, server.url))
        paid = len(server.bodies)
        again = sentloom(*arguments(tmp_path, server.url))
    assert (done.returncode, again.returncode, len(server.bodies)) == (0, 0, paid), done.stderr
    assert [text == "" for text in texts(tmp_path)] == [False] * 6 + [True] * 2 + [False] * 4
    assert unusable(tmp_path) == {BAD_TEXT: 2 * 8}


def test_an_answer_that_drips_ends_in_time(sentloom, tmp_path, untroubled):
    """Every read gives a byte within the time-out, but no whole answer comes within it."""
    endless = (
        HEAD + b"Content-Length: 1000000\r\n\r\n",
        HEAD + b"X-Padding: ",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
    )
    with chat_server(faults=[dripping(content) for content in endless]) as server:
        done = sentloom(*arguments(tmp_path, server.url, "block=6,timeout=2"))
        assert len(server.times) == len(server.bodies) + len(endless)
    assert done.returncode == 0, done.stderr
    assert texts(tmp_path) == texts(untroubled)


def poison(line: str, number: int) -> str:
    """An answer as earlier versions kept it."""
    values = json.loads(line)
    bad = [{"text": "\ud800"}, {"tokens_read": 99999999999}, {"text": str(PARTS)}, {"tokens_written": -5}, {"text": 3}]
    return json.dumps(values | bad[number]) if number < len(bad) else line


def poison_block(path: Path) -> None:
    """A text as earlier versions made it of a list."""
    table = pq.read_table(path)
    at = table.schema.get_field_index("text")
    changed = table.set_column(at, table.schema.field(at), [pa.array([str(PARTS), *table["text"].to_pylist()[1:]])])
    assert table.schema.metadata[b"sha256"] == digest(table)
    facts = {b"plan": table.schema.metadata[b"plan"], b"sha256": digest(changed)}
    pq.write_table(changed.replace_schema_metadata(facts), path)


def test_a_ledger_that_holds_bad_answers_heals(sentloom, tmp_path, untroubled):
    shutil.copytree(untroubled / "ledger", tmp_path / "ledger")
    answers = tmp_path / "ledger/answers.jsonl"
    lines = [line for line in answers.read_text("ascii").splitlines() if '"text"' in line]
    infinite = ['{"lost": 1e999}', '{"prices": [1e999, 0]}', "[" * 100_000]
    answers.write_text("\n".join([poison(line, at) for at, line in enumerate(lines)] + infinite) + "\n", "ascii")
    (tmp_path / "ledger/blocks/000001.parquet").unlink()
    (tmp_path / "ledger/blocks/000002.parquet").unlink()
    poison_block(tmp_path / "ledger/blocks/000000.parquet")
    plan = tmp_path / "ledger/plan.json"
    url = json.loads(plan.read_text())["writer"].split()[0]
    with chat_server(port=int(url.split(":")[2].split("/")[0])) as server:
        done = sentloom(*arguments(tmp_path, url))
        paid = len(server.bodies)
        again = sentloom(*arguments(tmp_path, url))
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    assert texts(tmp_path) == texts(untroubled)
    assert (paid, len(server.bodies)) == (5, 5)
    assert "5 stored answers cannot be used" in done.stdout
    assert "5 answers were unusable: stored by an earlier version (5)" in again.stdout
