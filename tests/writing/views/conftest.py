"""A small WordNet in the real format, and small models."""

from pathlib import Path

import pytest
import torch

from tests.writing.views.small_parts import build_masked_model, build_translation_model, build_wordnet


@pytest.fixture(autouse=True)
def two_threads() -> None:
    """Make views with two workers, even if the tests run with one thread per process."""
    torch.set_num_threads(2)


@pytest.fixture
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small WordNet where nltk would put it."""
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk_data"))
    return build_wordnet(tmp_path / "nltk_data/corpora/wordnet31")


@pytest.fixture(scope="session")
def masked_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_masked_model(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="session")
def translation_models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four Marian models with different weights: forward, backward, forward, backward."""
    pytest.importorskip("sentencepiece")
    return [build_translation_model(tmp_path_factory.mktemp("marian"), seed) for seed in range(4)]
