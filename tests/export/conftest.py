"""A small BERT with everything that a folder has to carry, and its exports, made once."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.formats import registry, sentence_transformers
from sentloom.encoder.heads import Projection
from sentloom.export.export import export
from tests.encoder.small_models import build_model_folder


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("export") / "bert")


@pytest.fixture(scope="session")
def encoder(bert):
    """With prompts, a projection, a pooling that is not the default, and a length that cuts texts."""
    plain = Encoder.load(bert, pooling="first", max_length=24)
    whole = Encoder(plain.backbone, plain.tokens, pooling=plain.pooling, heads=[Projection(32, 12, activation="tanh")])
    whole.prompts = {"query": Prompt("a man "), "document": Prompt("the dog ")}
    return whole.eval()


@pytest.fixture(scope="session")
def onnx(encoder, tmp_path_factory):
    return export(encoder, "onnx", tmp_path_factory.mktemp("onnx") / "model")


@pytest.fixture(scope="session")
def ctranslate2(encoder, tmp_path_factory):
    return export(encoder, "ctranslate2", tmp_path_factory.mktemp("ctranslate2") / "model")


@pytest.fixture
def listed(monkeypatch):
    """Lists a target of a name of its own, whose folders are loaded as sentence-transformers' are."""

    def add(name, target):
        module = SimpleNamespace(FORMAT=replace(sentence_transformers.FORMAT, targets={name: target}))
        monkeypatch.setitem(sys.modules, f"imaginary_{name}", module)
        monkeypatch.setattr(registry, "LISTED", [*registry.LISTED, registry.Listed(f"imaginary_{name}", (name,))])

    return add
