"""One small BERT for all tests of the engine."""

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from tests.encoder.small_models import build_model_folder


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Models this small gain nothing from threads that wait for each other; and forks are safe."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)
