"""`sentloom serve` in a process of its own, asked by the official client of OpenAI."""

import contextlib
import re
import signal
import subprocess
import sys
import threading

import httpx2
import numpy as np
import openai
import pytest

from sentloom.encoder import Encoder
from tests.cli.commands import ENVIRONMENT
from tests.encoder.small_models import SENTENCES, build_model_folder

SECRET = "0123456789abcdef0123"


@contextlib.contextmanager
def served(*arguments, **environment):
    """A running command and its address."""
    command = [
        sys.executable,
        "-c",
        "from sentloom.cli import main; main()",
        "serve",
        *map(str, arguments),
        "--port",
        "0",
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipes, env={**ENVIRONMENT, **environment}) as process:
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if found := re.search(r"Serving at (http://\S+)", line):
                    yield found[1], process
                    break
            else:
                pytest.fail("".join(lines))
        finally:
            process.kill()


@pytest.mark.long
def test_the_official_client_works_and_sigterm_answers_what_was_accepted(tmp_path):
    folder = build_model_folder("bert", tmp_path / "small")
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES) + "\n")
    encoder = Encoder.load(folder)
    options = (f"base={folder}", f"fitted={folder}", "--corpus", tmp_path / "texts.txt")
    with served(*options, SENTLOOM_API_KEY=SECRET) as (address, process):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key=SECRET, max_retries=0)
        assert [model.id for model in client.models.list()] == ["base", "fitted"]
        answer = client.embeddings.create(model="fitted", input=SENTENCES)  # asks for base64
        found = np.array([one.embedding for one in answer.data], np.float32)
        np.testing.assert_allclose(found, encoder.encode(SENTENCES), atol=1e-6)
        assert answer.usage.prompt_tokens == sum(map(len, encoder.tokenize(SENTENCES)))
        floats = client.embeddings.create(
            model="base", input="Yes", encoding_format="float", extra_body={"role": "query"}
        )
        np.testing.assert_allclose(floats.data[0].embedding, encoder.encode("Yes"), atol=1e-6)
        with pytest.raises(openai.UnprocessableEntityError, match="Send the texts themselves"):
            client.embeddings.create(model="base", input=[[1, 2, 3]])
        with pytest.raises(openai.NotFoundError, match="Choose one of: base, fitted"):
            client.embeddings.create(model="other", input="Yes")
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0).models.list()
        hits = client.post("/search", body={"query": SENTENCES[3], "k": 1}, cast_to=httpx2.Response).json()
        assert hits["data"][0][0]["text"] == SENTENCES[3]
        ended = under_load(address, process)
    assert ended == 0


def under_load(address, process):
    """Send SIGTERM while clients ask without a pause; every answer is 200, or 503 while it shuts down."""
    statuses, failures, begun, stopping = [], [], threading.Semaphore(0), threading.Event()

    def client():
        headers = {"authorization": f"Bearer {SECRET}"}
        with httpx2.Client(headers=headers, timeout=60) as session:
            for _ in range(10_000):
                try:
                    answer = session.post(f"{address}/v1/embeddings", json={"input": SENTENCES})
                except httpx2.TransportError as error:  # the server has gone
                    failures.extend([] if stopping.is_set() else [error])
                    return
                statuses.append(answer.status_code)
                begun.release()
                if answer.status_code == 503:
                    return

    clients = [threading.Thread(target=client) for _ in range(4)]
    for one in clients:
        one.start()
    for _ in range(12):
        assert begun.acquire(timeout=60)
    stopping.set()
    process.send_signal(signal.SIGTERM)
    for one in clients:
        one.join(60)
    rest = process.communicate(timeout=60)[0]
    assert set(statuses) <= {200, 503}, rest
    assert failures == []
    assert "; cut off: 0." in rest
    assert "Traceback" not in rest
    return process.returncode


def test_other_machines_need_a_key(sentloom, monkeypatch):
    monkeypatch.delenv("SENTLOOM_API_KEY", raising=False)
    done = sentloom("serve", "nowhere", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "no API key is set" in done.stderr
    assert "--api-key-file" in done.stderr


def test_mistakes_end_in_a_message(sentloom, tmp_path):
    for arguments, said in (
        (["no/such/model"], "no/such/model"),
        (["x=a", "x=b"], "two models are called 'x'"),
        (["embedded", "--api-key-file", tmp_path / "nowhere"], "cannot be read"),
    ):
        done = sentloom("serve", *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.long
def test_langchain_works(tmp_path):
    langchain = pytest.importorskip("langchain_openai", reason="pip install langchain-openai")
    folder = build_model_folder("bert", tmp_path / "small")
    encoder = Encoder.load(folder)
    with served(folder) as (address, _):
        options = {"model": "small", "base_url": f"{address}/v1", "api_key": "none"}
        embeddings = langchain.OpenAIEmbeddings(**options, check_embedding_ctx_length=False)
        found = embeddings.embed_documents(SENTENCES)
    np.testing.assert_allclose(found, encoder.encode(SENTENCES), atol=1e-6)
