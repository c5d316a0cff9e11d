"""Models behind an endpoint: a real server in this process, gated beside the folder that it serves."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import uvicorn

from sentloom import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError
from sentloom.serving.app import build_app
from sentloom.serving.batcher import Batcher
from sentloom.serving.models import Probe, ServedModel
from sentloom.serving.service import Service
from sentloom.systems.endpoint import EndpointModel
from sentloom.systems.gate import gate
from tests.fitting import small_base


@pytest.fixture(scope="module")
def encoder(base):
    loaded = Encoder.load(base)
    loaded.prompts = {"query": Prompt("bano "), "document": Prompt("")}
    return loaded


@pytest.fixture(scope="module")
def address(encoder):
    """A server with the model under the name small."""
    with ThreadPoolExecutor(2) as threads:
        model = ServedModel("small", encoder, Probe("bano", encoder.encode("bano")))
        app = build_app(Service(models={"small": model}, batcher=Batcher(threads, 2)))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        running = threading.Thread(target=server.run)
        running.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        running.join()


def test_vectors_are_those_of_the_model_in_each_role(address, encoder):
    model = EndpointModel.open(f"{address}/v1#small")
    texts = small_base.sentences(150, 1)  # three requests
    for role in ("symmetric", "query", "document"):
        np.testing.assert_allclose(model.encode(texts, role=role), encoder.encode(texts, role=role), atol=1e-5)
    assert model.encode([]).shape == (0, 0)


def test_two_names_of_one_endpoint_are_the_same_search(address, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    faq = small_base.pairs(tmp_path / "faq.tsv", 60)
    assert gate(address, f"{address}/v1/#small", [str(faq)], print).finding == "identical"


def test_a_served_model_is_gated_beside_another_folder(address, base, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    faq = small_base.pairs(tmp_path / "faq.tsv", 60)
    gated = gate(str(base), address, [str(faq)], print)
    assert gated.exit_code in (0, 1, 3)
    assert gated.total.items == 60


def test_what_is_no_endpoint_is_refused(address, monkeypatch):
    monkeypatch.setattr("sentloom.systems.endpoint.WAIT", 0.0)
    with pytest.raises(InputError, match="it has no model 'other'"):
        EndpointModel.open(f"{address}#other")
    with pytest.raises(InputError, match="it cannot be reached"):
        EndpointModel.open("http://127.0.0.1:9")
    monkeypatch.setenv("SENTLOOM_API_KEY", "0123456789abcdef")
    with pytest.raises(InputError, match="unencrypted"):
        EndpointModel.open("http://example.org")
