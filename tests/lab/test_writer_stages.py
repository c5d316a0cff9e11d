"""Stages that train a writer: what they learn from, and how their records read."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.lab.stages import DenoisingStage, SynthesizerStage
from tests.small_data import build_dataset

PAIRS = build_dataset(Shape.PAIRS, [("a", "b"), ("b", "c")])


def test_denoising_learns_from_distinct_sentences():
    denoising = stage("denoising", name="d", model="stage:start", data="a.tsv", steps=1)
    assert isinstance(denoising, DenoisingStage)
    assert denoising.models() == ("stage:start",)
    assert denoising.fit(PAIRS).column("text").to_pylist() == ["a", "b", "c"]


def test_paths_are_located_for_data_and_model():
    synthesizer = stage("synthesizer", name="s", model="model", data="a.tsv", steps=1).located(
        lambda name: f"/far/{name}"
    )
    assert isinstance(synthesizer, SynthesizerStage)
    assert (synthesizer.models(), synthesizer.data) == (("/far/model",), ("/far/a.tsv",))


@pytest.mark.parametrize(("losses", "said"), [([0.0, 0.0], "perplexity 1.0 -> 1.0 in training, "), ([], "")])
def test_the_record_of_denoising_has_the_perplexity_per_token(losses, said):
    record = {"losses": losses, "outcome": {"steps": 1200}, "data": {"rows": 34_000}}
    assert DenoisingStage.describe(record) == f"{said}1,200 steps on 34,000 sentences"


def test_the_record_of_a_synthesizer_compares_held_out_rows():
    held_out = {
        "before": {"accuracy": 0.5, "perplexity": 20.0, "rows": 10},
        "after": {"accuracy": 0.875, "perplexity": 2.5, "rows": 1000},
    }
    expected = "accuracy 50.0% -> 87.5%, perplexity 20.0 -> 2.5 on 1,000 held-out sentences"
    assert SynthesizerStage.describe({"held_out": held_out}) == expected
