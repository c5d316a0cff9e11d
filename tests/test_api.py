"""The public functions on data in memory, and the device and precision that they run in."""

import json
from dataclasses import replace

import pandas as pd
import pytest
import torch

import sentloom
from sentloom.errors import InputError, SentloomError
from tests.fitting.small_base import build_base, other, sentences
from tests.pipeline.small_recipes import Kitchen


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build_base(tmp_path_factory.mktemp("base"))


PAIRS = [(one, other(one)) for one in sentences(300, 1)]


@pytest.mark.long
def test_fit_of_rows_in_memory_resumes_and_equals_the_fit_of_the_file(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    done = sentloom.fit(PAIRS, "model", base=base, budget="20steps", force=True, log=lines.append)
    (file,) = (tmp_path / "model.fit" / "inputs").iterdir()
    assert [*sentloom.read(file)] == [*sentloom.read(PAIRS)]
    assert f"sentloom fit {file.relative_to(tmp_path)} -o model" in done.result.command
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    again = sentloom.fit(pd.DataFrame(PAIRS, columns=["anchor", "positive"]), "model", base=base, budget="20steps",
                         force=True, log=lines.append)  # fmt: skip
    assert [*(tmp_path / "model.fit" / "inputs").iterdir()] == [file]  # the same content is the same input
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights
    assert (*done.scores,)[0] == "the list"
    assert (*again.scores,)[0] == "the DataFrame"
    assert replace(again.result.total, name="the list") == done.result.total
    named = sentloom.fit(file.relative_to(tmp_path), "other", base=base, budget="20steps", force=True)
    assert replace(named.result.total, name="the list") == done.result.total


def test_a_fit_shows_itself_escaped_and_gives_the_encoder_to_use(base, tmp_path):
    lines = []
    done = sentloom.fit(PAIRS, tmp_path / "a<b>", base=base, budget="2steps", log=lines.append)
    assert lines[0].startswith("the list: 300 pairs")  # not the name of the file that the rows were written to
    assert "the list" in done.scores
    assert done.result.title == "a<b>, fitted to the list"
    assert "  10 steps run, more than the budget of 2: a stage trains for at least 10 steps" in lines
    page = done._repr_html_()
    assert "<table>" in page
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert "<strong>Better than its base.</strong>" in page
    used = done.model or base
    assert done.encoder.fingerprint() == sentloom.Encoder.load(used).fingerprint()
    assert done.encoder is done.encoder  # loaded once


def test_strict_refuses_unusable_rows_by_number(base, tmp_path):
    rows = [*PAIRS, ("a", "")]
    with pytest.raises(SentloomError, match="the list, row 301: empty cell"):
        sentloom.fit(rows, tmp_path / "m", base=base, budget="2steps", strict=True)
    assert not (tmp_path / "m.fit").exists()


@pytest.mark.long
def test_unusable_rows_are_left_out_and_reported_by_number(base, tmp_path):
    rows, lines = [*PAIRS, ("a", "")], []
    sentloom.fit(rows, tmp_path / "m", base=base, budget="2steps", log=lines.append)
    assert any("the list, row 301" in line for line in lines)


def test_columns_cannot_mean_files_and_rows_at_once(base, tmp_path):
    frame = pd.DataFrame({"q": ["a"], "a": ["b"]})
    with pytest.raises(InputError, match="Read the files first"):
        sentloom.fit([tmp_path / "x.csv", frame], tmp_path / "m", columns={"anchor": "q", "positive": "a"})


def test_train_takes_rows_in_memory_and_resumes(base, tmp_path):
    kitchen = Kitchen(tmp_path, base)
    recipe = kitchen.recipe("one", {"method": "simcse", "name": "learn"})
    texts = {"learn.data": [f"bano dalo {n}" for n in range(20)]}
    first = sentloom.train(recipe, tmp_path / "out", set=texts)
    lines = []
    again = sentloom.train(recipe, tmp_path / "out", set=texts, log=lines.append)
    assert first.rows == again.rows
    assert first.encoder.dimension == 32
    assert len([*(tmp_path / "out" / "inputs").iterdir()]) == 1
    assert len([*(tmp_path / "out" / "stages").iterdir()]) == 1


@pytest.mark.long
def test_training_in_bf16_is_another_stage_with_near_weights(base, tmp_path):
    kitchen = Kitchen(tmp_path, base)
    recipe = kitchen.recipe("one", {"method": "simcse", "name": "learn"})
    exact = sentloom.train(recipe, tmp_path / "out", precision="fp32").encoder
    rough = sentloom.train(recipe, tmp_path / "out", precision="bf16", device="cpu").encoder
    default = sentloom.train(recipe, tmp_path / "out").encoder
    assert len([*(tmp_path / "out" / "stages").iterdir()]) == 2
    assert default.fingerprint() == exact.fingerprint() != rough.fingerprint()
    for one, two in zip(exact.parameters(), rough.parameters(), strict=True):
        assert two.dtype == torch.float32
        assert torch.allclose(one, two, atol=0.05)


def test_bf16_scores_are_cached_apart(base, tmp_path):
    rows = [(a, b, n / 10) for n, (a, b) in enumerate(PAIRS[:10])]
    found = [
        sentloom.evaluate(
            str(base), rows, cache=tmp_path / "cache", precision=precision, output=tmp_path / f"{precision}.json"
        )
        for precision in ("fp32", "bf16")
    ]
    hashes = {
        json.loads((tmp_path / f"{one}.json").read_text())["models"][str(base)]["models"][0]["sha256"]
        for one in ("fp32", "bf16")
    }
    assert len(hashes) == 2
    assert all(len(one.scores) == 1 for one in found)


def test_mine_writes_triplets_of_a_data_frame(base, tmp_path):
    frame = pd.DataFrame({"question": [a for a, _ in PAIRS[:50]], "answer": [b for _, b in PAIRS[:50]], "n": range(50)})
    triplets, report = sentloom.mine(frame, tmp_path / "t.jsonl", model=base, margin=-1.0, negatives=2)
    assert report.rows == 50
    assert [*sentloom.read(tmp_path / "t.jsonl")] == [*triplets]
    assert all(row["positive"] not in row["negatives"] for row in triplets)


def test_encoders_and_names_are_scored_side_by_side_and_written(base, tmp_path):
    encoder, rows = sentloom.Encoder.load(base), PAIRS[:10]
    found = sentloom.evaluate([encoder, base], rows, output=tmp_path / "e.json")
    assert found.scores["Encoder 1"] == found.scores[str(base)]
    assert [*json.loads((tmp_path / "e.json").read_text())["models"]] == ["Encoder 1", str(base)]
    labelled = sentloom.evaluate({"x": encoder, "y": str(base)}, rows).scores
    assert labelled["x"] == labelled["y"] == found.scores["Encoder 1"]
    with pytest.raises(InputError, match="no model is given"):
        sentloom.evaluate([], rows)


def test_arguments_of_a_wrong_type_or_value_are_refused_with_a_sentence(base, tmp_path):
    output = tmp_path / "m"
    for call in (sentloom.fit, sentloom.mine):
        with pytest.raises(InputError, match=r"'pairz' is unknown. Expected one of texts, pairs"):
            call(PAIRS, tmp_path / "m.jsonl", shape="pairz")
    with pytest.raises(InputError, match="6 is not a budget"):
        sentloom.fit(PAIRS, output, base=base, budget=6)
    for seed in (-1, "1"):
        with pytest.raises(InputError, match=f"seed: {seed!r} is not a seed. Expected an integer of 0 or more"):
            sentloom.fit(PAIRS, output, base=base, seed=seed)
    with pytest.raises(InputError, match=r"type Encoder(.|\n)*encoder\.save\(folder\)"):
        sentloom.fit(PAIRS, output, base=sentloom.Encoder.load(base))
    with pytest.raises(InputError, match="no recipe is given"):
        sentloom.compare([], output)
    with pytest.raises(InputError, match="pooling, device and precision cannot be changed for an Encoder in memory"):
        sentloom.mine(PAIRS, model=sentloom.Encoder.load(base), pooling="first")
    assert not [*tmp_path.glob("m*")]


def test_options_of_training_are_refused_for_fits(tmp_path):
    fits = [tmp_path / "a.fit", tmp_path / "b.fit"]
    for one in fits:
        one.mkdir()
        (one / "report.json").write_text("{}")
    wrong = {"seeds": 5, "variant": "a", "set": {"seeds": [1]}, "on": PAIRS, "data": "folder"}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"{name} cannot be used with fits"):
            sentloom.compare(fits, **{name: value})


@pytest.mark.long
def test_of_several_models_one_must_be_chosen(base, tmp_path):
    stage, variants = {"method": "simcse", "name": "learn"}, {"a": {}, "b": {"learn.steps": 1}}
    recipe = Kitchen(tmp_path, base).recipe("two", stage, variants=variants)
    first = tmp_path / "out" / "models" / "a" / "seed-1"
    alone = sentloom.train(recipe, tmp_path / "out", variant="a").encoder
    assert alone.fingerprint() == sentloom.Encoder.load(first).fingerprint()
    trained = sentloom.train(recipe, tmp_path / "out")
    with pytest.raises(InputError, match=r"several models: models/a/seed-1, models/b/seed-1\.") as refused:
        trained.encoder  # noqa: B018
    assert f'sentloom.Encoder.load("{first}")' in str(refused.value)
