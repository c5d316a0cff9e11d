"""A small model of each family, built once per session."""

import shutil
from pathlib import Path

import pytest
import torch

from sentloom.encoder import Encoder
from tests.encoder.small_models import FAMILIES, build_model_folder


@pytest.fixture(autouse=True)
def two_threads():
    """Make `encode` use two workers, even if the tests run with one thread per process."""
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")

    class Folders(dict[str, Path]):
        """Built when they are first asked for."""

        def __missing__(self, family: str) -> Path:
            self[family] = build_model_folder(family, root / family)
            return self[family]

    return Folders()


@pytest.fixture
def folder(model_folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the small BERT, to change or damage."""
    return Path(shutil.copytree(model_folders["bert"], tmp_path / "model"))


@pytest.fixture
def one_thread(two_threads: None) -> None:
    """Run with one thread where no workers are used, because waiting threads are expensive."""
    torch.set_num_threads(1)


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def encoder(family: str, model_folders: dict[str, Path]) -> Encoder:
    return Encoder.load(model_folders[family])
