"""A small model, and a service around it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sentloom.encoder import Encoder
from sentloom.serving.batcher import Batcher, BatchLimits
from sentloom.serving.models import Probe, ServedModel
from sentloom.serving.service import Service
from tests.encoder.small_models import build_model_folder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("served") / "small")


@pytest.fixture
def encoder(folder):
    return Encoder.load(folder, pooling="mean")


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture
def make_service(encoder, executor):
    """A service with one model, `small`; arguments are those of Service."""

    def make(batch_limits=None, **more):
        model = ServedModel("small", encoder, Probe("A man plays.", encoder.encode("A man plays.")))
        batcher = Batcher(executor, 2, batch_limits or BatchLimits())
        return Service(models={"small": model}, batcher=batcher, **more)

    return make


@pytest.fixture
def free(encoder):
    """An event: until it is set, every batch of the encoder waits."""
    event, forward = threading.Event(), encoder.forward

    def waits(ids):
        assert event.wait(60)
        return forward(ids)

    encoder.forward = waits
    yield event
    event.set()
