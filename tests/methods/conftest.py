"""Small models and batches for the methods."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from tests.encoder.small_models import FAMILIES, SENTENCES, build_model_folder
from tests.search.small_cross_encoders import build_cross_encoder

OTHERS = [
    "Someone plays music on a stage.",
    "A pair of dogs runs over the snow.",
    "On Monday the report will be published.",
    "The distance between each pair of inputs.",
    "Had the train to Lisbon left, she asked.",
    "It rains and no one knows.",
    "Yes, yes",
    "Der Hund bellt im Garten.",
]


@pytest.fixture(autouse=True)
def one_thread():
    """Models this small gain nothing from threads that wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's small model, built when first asked for."""
    root = tmp_path_factory.mktemp("models")
    return cache(lambda family: build_model_folder(family, root / family))


@pytest.fixture(scope="session")
def mlm_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The same with a masked language head beside the weights, its biases and norms away from their start."""
    root = tmp_path_factory.mktemp("masked")

    def build(family: str) -> Path:
        folder = build_model_folder(family, root / family)
        torch.manual_seed(1)
        model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape))
        model.save_pretrained(folder)
        return folder

    return cache(build)


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small cross-encoder."""
    return str(build_cross_encoder(tmp_path_factory.mktemp("models") / "teacher"))


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def encoder(model_folder: Callable[[str], Path]) -> Encoder:
    """A small BERT."""
    return Encoder.load(model_folder("bert"), pooling="first")


def texts_batch(sentences: list[str] = SENTENCES, key: tuple[int, int] = (0, 0)) -> Batch:
    return Batch({"text": sentences}, np.arange(len(sentences)), np.arange(len(sentences)), key)


def pairs_batch(first: list[str] = SENTENCES, second: list[str] = OTHERS, key: tuple[int, int] = (0, 0)) -> Batch:
    return Batch({"anchor": first, "positive": second}, np.arange(len(first)), np.arange(len(first)), key)


def optimise(method, batches, rate=1e-2) -> list[float]:
    """A few plain steps, as the training loop takes them."""
    method.train()
    optimizer = torch.optim.AdamW([p for p in method.parameters() if p.requires_grad], lr=rate)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = method.total_loss(method.embed(batch), batch)
        loss.backward()
        optimizer.step()
        method.after_step()
        losses.append(loss.item())
    return losses


def states_of(module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def changed(module, before) -> set[str]:
    """The names of what is no longer bit for bit the same."""
    return {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}
