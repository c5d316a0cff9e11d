"""A whole fit with a writer: what the filters drop ends a route, and nothing is written for held-out rows."""

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sentloom import fit
from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.fitting import routes
from sentloom.fitting.routes import SCHEDULE, Route
from sentloom.writing.chat import EndpointError
from sentloom.writing.endpoint import KEY
from tests.fitting import small_base
from tests.fitting.test_routes import Installed
from tests.writing.chat_server import chat_server, status
from tests.writing.small_causal import build_small_causal

SECRET = "sk-very-secret-0123"
LIMIT = 4_000  # tokens: of about 50 texts
LOOSE = {"finished": False, "round_trip": 0, "language": False, "copied": 1.0, "length": 6}


def loose(training_sets, resources):
    """The route `queries`, with filters that let the texts of random weights pass."""
    files = {training_set.shape: training_set.files for training_set in training_sets}
    source = {"model": resources.writer.name, "data": list(files[Shape.TEXTS]), "shots": files[Shape.PAIRS][0]}
    options = {"kinds": ["query"], "encoder": resources.base, "shuffle": True, **LOOSE}
    written = stage("synthesize", name="loose-queries", **source, **options)
    learn = stage("contrastive", name="loose", data="stage:loose-queries", batch=16, max_length=16, **SCHEDULE)
    yield Route("loose", "it has loose filters", (written, learn))


def texts_in(*paths):
    return {text for path in paths for _, _, text in read(path).sentences()}


@pytest.mark.long
def test_a_writer_whose_texts_are_dropped_ends_its_routes_and_writes_for_training_texts_only(
    base, tmp_path, monkeypatch
):
    monkeypatch.setattr(routes, "entry_points", lambda group: [Installed(loose)] if group == "sentloom.routes" else [])
    pairs, raw = small_base.pairs(tmp_path / "faq.tsv", 300), small_base.prose(tmp_path / "raw.txt", 200)
    answers = [row["positive"] for row in read(pairs)]
    raw.write_text(raw.read_text("utf-8") + "\n".join(answers) + "\n", "utf-8")  # held-out answers among them
    writer = build_small_causal(tmp_path / "writer")
    done = fit([Path(raw), Path(pairs)], tmp_path / "model", base=base, budget="900steps", writer=writer)
    skipped = {route.name: route.why for route in done.result.routes if not route.tried}
    assert skipped["queries, then pairs"].startswith("the filters kept ")
    assert "--teacher" in skipped["queries with a teacher"]
    scored = {run.route for run in done.result.runs if run.score is not None}
    assert {"pairs", "loose"} <= scored
    folder = tmp_path / "model.fit"
    parts = {side: texts_in(*(folder / "data").glob(f"*-{side}.parquet")) for side in ("train", "validation", "test")}
    training, held_out = parts["train"], parts["validation"] | parts["test"]
    assert held_out & set(answers)
    blocks = [pq.read_table(path) for path in (folder / "stages").glob("*-ledger-*/blocks/0*.parquet")]
    sources = {text for block in blocks for text in block["source_text"].to_pylist()}
    assert len(sources) > 100
    assert sources <= training
    assert not sources & held_out
    prompts = {text for block in blocks for text in block["prompt"].to_pylist()}
    shown = [text for text in texts_in(pairs) if any(f": {text}\n" in prompt for prompt in prompts)]
    assert len(shown) == 10  # both sides of five pairs
    assert set(shown) <= training


def mirrored(body):
    """The words of the text in reverse: not a copy, and easy to find; every judgement is true."""
    said = body["messages"][-1]["content"]
    return "true" if "answer with one word" in said else " ".join(reversed(said.split()))


@pytest.mark.long
def test_an_endpoint_writes_in_a_fit_for_training_texts_only_and_is_asked_once(base, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY, SECRET)
    texts, told = small_base.pairs(tmp_path / "faq.tsv", 150), []
    with chat_server(answer=mirrored) as server:
        log = lambda line: told.append((line, len(server.bodies)))  # noqa: E731
        asked = {"base": base, "budget": "200steps", "writer": server.url, "writer_model": "small"}
        run = partial(fit, Path(texts), tmp_path / "model", **asked, log=log)
        limited = run(max_tokens=LIMIT).result
        assert 0 < server.tokens <= LIMIT
        assert "queries, then pairs" in {run.route for run in limited.runs if run.score is not None}
        (warning,) = (warning for warning in limited.warnings if "token limit" in warning)
        assert warning == "The token limit was reached: queries, then pairs writes for 32 texts instead of 89."
        server.faults += [None] * 9 + [status(401)] * 8
        with pytest.raises(EndpointError, match="it answered 401"):
            run()
        server.faults.clear()
        done = run()
    assert "queries, then pairs" in {run.route for run in done.result.runs if run.score is not None}
    assert len({json.dumps(body, sort_keys=True) for body in server.bodies}) == len(server.bodies)
    host = server.url.removeprefix("http://").removesuffix("/v1")
    first = next(before for line, before in told if f"sending 89 texts to {host} (small)" in line)
    assert first == 0
    folder = tmp_path / "model.fit"
    held_out = texts_in(*(folder / "data").glob("*-validation.parquet"), *(folder / "data").glob("*-test.parquet"))
    sent = {message["content"] for body in server.bodies for message in body["messages"]}
    assert len(held_out) > 20
    assert not held_out & sent
    assert not any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())
