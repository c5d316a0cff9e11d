"""Bases: their names, what is special about them, and which of them the winner has to beat."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError, MissingPart
from sentloom.fitting.bases import base_at, load_bases
from tests.fitting import small_base
from tests.fitting.test_request import request


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    bases = tmp_path_factory.mktemp("bases")
    small_base.build_base(bases)
    return bases


def test_labels_are_the_last_parts_of_names_unless_they_are_equal(folder, tmp_path):
    loaded = load_bases(request(base=(str(folder / "base"), str(folder / "plain"))))
    assert [base.label for base in loaded] == ["base", "plain"]
    twin = tmp_path / "base"
    twin.symlink_to(folder / "plain")
    names = (str(folder / "base"), str(twin))
    assert [base.label for base in load_bases(request(base=names))] == list(names)
    assert base_at(loaded, str(folder / "plain")) is loaded[1]
    assert base_at(loaded, None) is loaded[0]


def test_prompts_for_queries_and_documents(folder, tmp_path):
    encoder = Encoder.load(folder / "base", prompts={"query": Prompt("q: ")})
    encoder.save(tmp_path / "asks")
    Encoder.load(folder / "base", prompts={"symmetric": Prompt("x: ")}).save(tmp_path / "alike")
    names = (str(folder / "base"), str(tmp_path / "asks"), str(tmp_path / "alike"))
    assert [base.is_asymmetric for base in load_bases(request(base=names))] == [False, True, False]


def test_too_many_dimensions(folder):
    with pytest.raises(InputError, match=r"33 dimensions are asked for, and the vectors of .* have 32"):
        load_bases(request(base=(str(folder / "base"),), dimensions=(33, 8)))


def test_a_large_base_needs_peft(folder, monkeypatch):
    asked = request(base=(str(folder / "base"),))
    (base,) = load_bases(asked)
    assert not base.is_large
    assert base.parameters == sum(np.prod(parameter.shape) for parameter in base.encoder.backbone.parameters())
    assert load_bases(asked, base.parameters)[0].is_large
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingPart, match=r"adapters \(LoRA\) are trained, and peft is not installed"):
        load_bases(asked, base.parameters)


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_prompts_by_the_names_that_sentence_transformers_looks_for(folder, tmp_path, name):
    Encoder.load(folder / "base").save(tmp_path / "base")
    config = tmp_path / "base" / "config_sentence_transformers.json"
    prompts = {"query": "bano ", name: "delo ", "clustering": "x "}
    Path(config).write_text(json.dumps({"prompts": prompts, "default_prompt_name": None}), "utf-8")
    prompts = Encoder.load(tmp_path / "base").prompts
    assert (prompts["query"].prefix, prompts["document"].prefix) == ("bano ", "delo ")
