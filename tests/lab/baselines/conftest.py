"""A small model with random weights, and enough texts to whiten it."""

import random
from pathlib import Path

import pytest

from sentloom.encoder import Encoder
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="session")
def small(small_folder: Path) -> Encoder:
    return Encoder.load(small_folder)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    rng, words = random.Random(0), " ".join(SENTENCES).split()
    return [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(150)]
