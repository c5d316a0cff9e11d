"""A small text-to-text model that all tests of writing and judging read, and none changes."""

import pytest
import torch

from sentloom.writing.text_to_text import TextToText
from tests.writing.asking import Request
from tests.writing.small_synthesizers import SHORT, TRIPLETS, build_small_t5


@torch.no_grad()
def stir(model):
    """Make layers louder than embeddings: random weights as they come repeat the start symbol for ever."""
    for name, weights in model.named_parameters():
        if weights.dim() == 2 and not any(part in name for part in ("shared", "embed", "relative", "lm_head")):
            weights *= 3
    return model


@pytest.fixture(scope="session")
def calm_folder(tmp_path_factory):
    """Random weights as they come."""
    return build_small_t5(tmp_path_factory.mktemp("calm") / "model", width=64)


@pytest.fixture
def model(calm_folder):
    """A model of its own for each test, with short prompts."""
    return TextToText.load(calm_folder, wording=SHORT)


@pytest.fixture(scope="session")
def writer_folder(calm_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("writer") / "model"
    model = TextToText.load(calm_folder)
    stir(model.model)
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def writer(writer_folder):
    return TextToText.load(writer_folder)


@pytest.fixture(scope="session")
def asked():
    """Requests of both kinds, for texts of many lengths, one of them empty and one longer than what is read."""
    texts = [" and ".join(anchor for anchor, _, _ in TRIPLETS[at : at + 1 + at % 4]) for at in range(0, 150, 10)]
    texts += ["", " so ".join(anchor for anchor, _, _ in TRIPLETS[:40])]
    return [
        Request(source, text, kind, candidate)
        for source, text in enumerate(texts)
        for kind in ("entailment", "contradiction")
        for candidate in range(2)
    ]


@pytest.fixture(scope="session")
def pairs():
    """Premises with hypotheses that follow, or contradict them, or are empty."""
    rows = [
        (anchor, hypothesis) for anchor, positive, (negative,) in TRIPLETS[::12] for hypothesis in (positive, negative)
    ]
    return [*rows, ("", ""), (" ".join(anchor for anchor, _, _ in TRIPLETS[:30]), "a man sleeps")]
