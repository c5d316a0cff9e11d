"""An output folder is left as it was if the input is refused; options that would do nothing are refused."""

import pytest

import sentloom
from sentloom.api.common import building_in, refuse_options_in_memory, scored_inputs
from sentloom.engine.runner import STAGES
from sentloom.errors import InputError, TrainingStopped
from tests.api.small_pairs import PAIRS


def refused_in(folder, *files, error=InputError):
    with pytest.raises(error), building_in(folder):
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
        raise error("data", "wrong", "", "correct it")


def test_a_refused_input_leaves_nothing(tmp_path):
    folder = tmp_path / "new" / "model.fit"
    refused_in(folder, folder / "inputs" / "rows.parquet", folder / "plan.json")
    assert not (tmp_path / "new").exists()


def test_what_was_there_before_or_was_trained_stays(tmp_path):
    folder, other = tmp_path / "a.fit", tmp_path / "b.fit"
    refused_in(folder, folder / STAGES / "learn-1" / "log.jsonl", folder / "plan.json", error=TrainingStopped)
    assert sorted(one.name for one in folder.iterdir()) == ["plan.json", STAGES]
    other.mkdir()
    (other / "report.json").write_text("{}")
    refused_in(other, other / "inputs" / "rows.parquet")
    assert sorted(one.name for one in other.iterdir()) == ["inputs", "report.json"]


def test_rows_that_nothing_can_be_scored_on_are_refused_by_what_they_are(tmp_path):
    with pytest.raises(
        InputError, match=r"the list: texts cannot be scored\. Expected pairs or triplets or scored-pairs"
    ):
        scored_inputs(sentloom.read(["a b", "c d"]), tmp_path, print)
    assert [one.name for one in scored_inputs(["sts", "faq.csv"], tmp_path, print)] == ["sts", "faq.csv"]
    assert scored_inputs(PAIRS, tmp_path, print)[0].rows.shape == "pairs"


def test_options_of_loading_are_refused_for_what_is_loaded(base):
    encoder = sentloom.Encoder.load(base)
    refuse_options_in_memory([base, None], precision="bf16", device=None)
    refuse_options_in_memory([encoder], precision=None)
    for call in (
        lambda **options: sentloom.evaluate({"a": base, "b": [encoder]}, PAIRS[:10], **options),
        lambda **options: sentloom.lab.mine(PAIRS[:10], model=encoder, **options),
    ):
        for name, value in {"precision": "bf16", "device": "cpu", "pooling": "first"}.items():
            with pytest.raises(InputError, match=f"{name} cannot be changed for an Encoder in memory"):
                call(**{name: value})
    with pytest.raises(InputError, match="precision cannot be changed for an Encoder in memory"):
        sentloom.lab.mine(PAIRS[:10], model=base, guide=encoder, precision="bf16")
