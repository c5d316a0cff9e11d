"""Stages: what is done is kept, what changed is made anew, what was killed goes on; data fit the method or are refused."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.device import running_on
from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.engine.rows import read_data
from sentloom.engine.runner import start_accelerator
from sentloom.errors import InputError, ModelError, RecipeError, TrainingStopped
from sentloom.evaluation.bench import read_scores
from sentloom.evaluation.metrics import spearman
from sentloom.lab.forecast import forecast
from tests.encoder.small_models import build_model_folder

MLM, SIMCSE = {"method": "mlm"}, {"method": "simcse"}


def test_a_kept_stage_is_not_run_again_and_an_edited_one_leaves_those_before_it(kitchen):
    first = kitchen.run(MLM, SIMCSE)
    made = kitchen.stages()
    assert {name.split("-")[0] for name in made} == {"mlm", "simcse"}
    assert kitchen.run(MLM, SIMCSE) == first
    assert kitchen.stages() == made
    kitchen.run(MLM, SIMCSE | {"learning_rate": 2e-3})
    after = kitchen.stages()
    assert len(after) == 3
    assert {name: when for name, when in after.items() if name in made} == made


@pytest.mark.long
def test_what_changes_no_number_changes_no_key(kitchen):
    kitchen.run(MLM, SIMCSE)
    after = kitchen.stages()
    kitchen.run(MLM | {"log_every": 1}, SIMCSE | {"checkpoint_seconds": 0, "snapshots": 2})
    assert kitchen.stages() == after
    assert "simcse, seed 1: trained without snapshots" in kitchen.told[-1]


@pytest.mark.long
def test_another_first_stage_makes_another_second_one(kitchen):
    kitchen.run(MLM, SIMCSE)
    kitchen.run(MLM | {"steps": 3}, SIMCSE)
    assert len(kitchen.stages()) == 4


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_damaged_score_is_computed_again(kitchen):
    whole = kitchen.run({"method": "simcse"})
    before = {path: path.read_bytes() for path in kitchen.folder.glob("out/scores/*.safetensors")}
    assert len(before) == 3  # the base as it is, as it is trained, and the result
    for path, content in before.items():
        flip(path, len(content) - 4)  # in the numbers, which are as good as any
    assert kitchen.run({"method": "simcse"}) == whole
    assert all(map(read_scores, before))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("result.json", marks=pytest.mark.long),
        "model/model.safetensors",
        pytest.param("model/tokenizer.json", marks=pytest.mark.long),
    ],
)
def test_a_damaged_stage_is_trained_again(kitchen, name):
    (whole,) = kitchen.run({"method": "simcse"})
    path = whole.model.parent / name
    content = path.read_bytes()
    flip(path, content.index(b"steps") + 7 if name == "result.json" else len(content) // 2)
    (again,) = kitchen.run({"method": "simcse"})
    assert any("is missing or damaged" in line for line in kitchen.told)
    assert again.after == whole.after
    assert again.stages[0]["fingerprint"] == whole.stages[0]["fingerprint"]


def test_a_stage_takes_what_the_one_before_gave(kitchen):
    result = kitchen.run(MLM, SIMCSE)[0]
    first, second = result.stages
    models = {
        stage["key"]: path / "model"
        for stage in result.stages
        for path in kitchen.folder.glob(f"out/stages/*{stage['key']}")
    }
    assert first["fingerprint"] == second["input"] == Encoder.load(models[first["key"]]).fingerprint()
    assert second["fingerprint"] == Encoder.load(result.model).fingerprint()
    assert result.model == models[second["key"]]
    assert not list(kitchen.folder.glob("out/stages/*/checkpoints"))
    assert first["input"] == Encoder.load(kitchen.base, pooling="first", max_length=32).fingerprint()


@pytest.mark.long
def test_snapshots_stay_with_the_stage_but_for_what_a_kill_left_half_written(kitchen):
    kitchen.run(SIMCSE | {"snapshots": 2})
    (place,) = kitchen.folder.glob("out/stages/*/snapshots")
    (place / ".step-00000002.x").mkdir()
    kitchen.run(SIMCSE | {"snapshots": 2})
    assert sorted(path.name for path in place.iterdir()) == [f"step-{step:08d}" for step in (0, 2, 4)]
    assert not any("without snapshots" in text for text in kitchen.told)


def test_edited_data_make_a_new_stage(kitchen):
    kitchen.run(SIMCSE)
    with (kitchen.folder / "texts.txt").open("a") as file:
        file.write("One more sentence.\n")
    kitchen.run(SIMCSE)
    assert len(kitchen.stages()) == 2


@pytest.mark.long
def test_a_copy_of_the_base_is_the_same_base(kitchen):
    kitchen.run(SIMCSE)
    made = kitchen.stages()
    shutil.copytree(kitchen.base, kitchen.folder / "copy")
    kitchen.run(SIMCSE, base="copy")
    assert kitchen.stages() == made


def test_seeds_differ_and_a_base_alone_has_none(kitchen):
    results = kitchen.run(SIMCSE, seeds=[1, 2])
    assert [result.seed for result in results] == [1, 2]
    assert results[0].stages[0]["fingerprint"] != results[1].stages[0]["fingerprint"]
    assert results[0].before == results[1].before
    alone = kitchen.run(seeds=[1, 2])
    assert len(alone) == 1
    assert alone[0].model is None
    assert alone[0].after == alone[0].at_start == results[0].at_start
    assert alone[0].before == results[0].before


def unit(encoder, data, column):
    vectors = encoder.encode(data.column(column).to_pylist()).astype(float)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scores_are_those_of_the_models(kitchen):
    result = kitchen.run(SIMCSE, pooling="mean", evaluate={"sets": ["scored.tsv", "faq.tsv"]})[0]
    scored, faq = (str(kitchen.folder / name) for name in ("scored.tsv", "faq.tsv"))
    data = read(scored)
    for encoder, scores in [
        (Encoder.load(kitchen.base, pooling="mean", max_length=32), result.before),
        (Encoder.load(result.model), result.after),
    ]:
        x, y = (unit(encoder, data, name) for name in ("sentence1", "sentence2"))
        expected = spearman((x * y).sum(axis=1), data.column("score").to_numpy())
        assert scores[scored] == pytest.approx(100 * expected)
        pairs = read(faq)
        queries, answers = (unit(encoder, pairs, name) for name in ("anchor", "positive"))
        ranks = [1 + int((row > row[i]).sum()) for i, row in enumerate(queries @ answers.T)]
        assert scores[faq] == pytest.approx(
            100 * np.mean([1 / np.log2(1 + rank) if rank <= 10 else 0 for rank in ranks])
        )


def test_a_judge_of_another_shape_is_refused(kitchen):
    with pytest.raises(InputError, match=r"texts cannot be scored\. Expected pairs or triplets or scored-pairs"):
        find_evaluation_set(str(kitchen.folder / "texts.txt"), None)


def test_leaks_are_refused_unless_it_is_said(kitchen):
    with (kitchen.folder / "texts.txt").open("a") as file:
        file.write(f"A  {read(kitchen.folder / 'scored.tsv').column('sentence1')[0].as_py()[2:].upper()}\n")
    with pytest.raises(InputError, match=r"stage simcse, .*texts\.txt, line 25(.|\n)*transductive: true") as refused:
        kitchen.run(SIMCSE)
    assert "scored.tsv" in str(refused.value).replace("\n", " ")
    assert not (kitchen.folder / "out").exists()
    result = kitchen.run(SIMCSE | {"transductive": True})[0]
    assert result.transductive
    assert result.stages[0]["leaked"] == 1


def test_leaks_into_originals_are_found_before_views_are_made(kitchen):
    shutil.copy(kitchen.folder / "scored.tsv", kitchen.folder / "training.tsv")
    stage = {"method": "bootstrapped", "data": "training.tsv", "views": {"kind": "file", "file": "none.tsv"}}
    with pytest.raises(InputError, match="of its sentences are also scored on"):
        kitchen.run(stage)


def test_leaks_that_views_bring_are_found(kitchen):
    leak = read(kitchen.folder / "scored.tsv").column("sentence2")[0].as_py()
    lines = (kitchen.folder / "pairs.tsv").read_text().splitlines()
    (kitchen.folder / "views.tsv").write_text("\n".join([*lines[:-1], lines[-1].split("\t")[0] + "\t" + leak]) + "\n")
    stage = {"method": "bootstrapped", "views": {"kind": "file", "file": "views.tsv"}}
    with pytest.raises(InputError, match="of its sentences are also scored on"):
        kitchen.run(stage)
    assert kitchen.run(stage | {"transductive": True})[0].stages[1]["leaked"] == 1


def test_rows_that_leak_are_left_out_when_asked(kitchen):
    texts = (kitchen.folder / "texts.txt").read_text().splitlines()
    (kitchen.folder / "new.tsv").write_text(
        f"sentence1\tsentence2\tscore\n{texts[0].upper()}\tother\t1\nsome\tmore\t2\n"
    )
    result = kitchen.run(SIMCSE | {"drop_leaks": True}, evaluate={"sets": ["new.tsv"]})[0]
    (stage,) = result.stages
    assert (stage["data"]["rows"], stage["leaked"]) == (len(set(texts)) - 1, 0)
    assert stage["data"]["skipped"]["rows with sentences of the evaluation sets"] == 1
    assert not result.transductive


def test_a_kept_stage_knows_the_leaks_of_todays_sets(kitchen):
    stage = SIMCSE | {"transductive": True}
    assert not kitchen.run(stage)[0].transductive
    made = kitchen.stages()
    with (kitchen.folder / "new.tsv").open("w") as file:
        first = read(kitchen.folder / "texts.txt").column("text")[0].as_py()
        file.write(f"sentence1\tsentence2\tscore\n{first}\tother\t1\nsome\tmore\t2\n")
    result = kitchen.run(stage, evaluate={"sets": ["new.tsv"]})[0]
    assert kitchen.stages() == made
    assert result.transductive


def test_selection_by_a_set_and_leaks_into_it(kitchen):
    result = kitchen.run(SIMCSE, select={"on": "faq.tsv", "every": 2})[0]
    outcome = result.stages[0]["outcome"]
    assert outcome["best_step"] in (2, 4)
    assert outcome["best_score"] == find_evaluation_set(str(kitchen.folder / "faq.tsv"), None).score(
        Encoder.load(result.model)
    )
    shutil.copy(kitchen.folder / "faq.tsv", kitchen.folder / "training.tsv")
    with pytest.raises(InputError, match="of its sentences are also scored on"):
        kitchen.run(SIMCSE | {"data": "training.tsv"}, select={"on": "faq.tsv", "every": 2})


def shape_of(kitchen, stage):
    (planned,) = kitchen.plan(stage).stages
    return planned.fit(read_data(planned))


def test_data_are_brought_to_the_methods_shape(kitchen):
    pairs = {"data": "pairs.tsv"}
    assert shape_of(kitchen, {"method": "bootstrapped", **pairs}).shape is Shape.PAIRS
    assert shape_of(kitchen, {"method": "self-guided", **pairs}).shape is Shape.PAIRS
    texts = shape_of(kitchen, SIMCSE | pairs)
    assert texts.shape is Shape.TEXTS
    both = read(kitchen.folder / "pairs.tsv")
    expected = [
        text
        for row in zip(both.column("anchor").to_pylist(), both.column("positive").to_pylist(), strict=True)
        for text in row
    ]
    assert texts.column("text").to_pylist() == expected
    assert texts.place(3).endswith("pairs.tsv, line 3")
    assert shape_of(kitchen, {"method": "bootstrapped"}).shape is Shape.TEXTS
    with pytest.raises(InputError, match="pairs, which contrastive-bt learns from"):
        shape_of(kitchen, {"method": "contrastive-bt"})


def test_repeated_sentences_are_trained_on_once(kitchen):
    text = (kitchen.folder / "texts.txt").read_text()
    (kitchen.folder / "texts.txt").write_text(text + text)
    assert len(shape_of(kitchen, SIMCSE)) == 24


def test_files_are_joined_and_unlike_ones_become_sentences(kitchen):
    shutil.copy(kitchen.folder / "pairs.tsv", kitchen.folder / "more.tsv")
    joined = shape_of(kitchen, {"method": "bootstrapped", "data": ["pairs.tsv", "more.tsv"]})
    assert (joined.shape, len(joined)) == (Shape.PAIRS, 48)
    assert joined.place(24).endswith("more.tsv, line 2")
    mixed = shape_of(kitchen, SIMCSE | {"data": ["texts.txt", "pairs.tsv"]})
    assert (mixed.shape, len(mixed)) == (Shape.TEXTS, 48)  # the anchors are the texts


def test_views_for_a_method_of_single_sentences_are_refused(kitchen):
    ready = {"views": {"kind": "file", "file": "pairs.tsv"}}
    kitchen.plan({"method": "bootstrapped", **ready})
    for method in ("simcse", "mlm"):
        with pytest.raises(RecipeError, match=f"{method} takes no views"):
            kitchen.plan({"method": method, **ready})


@pytest.fixture(scope="session")
def modernbert(tmp_path_factory):
    return build_model_folder("modernbert", tmp_path_factory.mktemp("models") / "modernbert")


def test_a_backbone_without_dropout_is_refused_where_views_come_from_it(kitchen, modernbert):
    kitchen.base = modernbert
    assert Encoder.load(modernbert).backbone.dropout == 0
    for stage in (SIMCSE, {"method": "bootstrapped"}):
        with pytest.raises(InputError, match=r"has no dropout(.|\n)*Set dropout: 0\.1 in the stage"):
            kitchen.run(stage)
    before = Encoder.load(modernbert).state_dict()
    result = kitchen.run(SIMCSE | {"dropout": 0.1})[0]
    after = load_file(result.model / "model.safetensors")
    assert any(not torch.equal(after[name.removeprefix("backbone.model.")], tensor) for name, tensor in before.items())
    assert Encoder.load(result.model).backbone.dropout == 0  # it was for training alone
    kitchen.run({"method": "bootstrapped", "data": "pairs.tsv"})  # pairs differ by themselves


def test_a_base_made_for_writing_is_scored_with_the_pooling_of_the_plan(kitchen, tmp_path):
    kitchen.base = build_model_folder("qwen3", tmp_path / "qwen3")
    (result,) = kitchen.run({"method": "contrastive", "data": "pairs.tsv"}, pooling="last")
    assert result.base == f"{kitchen.base}, last"
    assert result.start == f"{result.base}, 32 tokens"
    with pytest.raises(ModelError, match="Choose it with pooling"):
        kitchen.run({"method": "contrastive", "data": "pairs.tsv"}, pooling=None)


def test_views_in_a_forecast_need_no_dropout(kitchen, modernbert):
    from accelerate import Accelerator

    kitchen.base = modernbert
    stage = {"method": "bootstrapped", "views": {"kind": "file", "file": "pairs.tsv"}}
    views, training = forecast(kitchen.plan(stage), Accelerator(cpu=True))
    assert (views.method, views.shape, views.rows, views.steps) == ("views", Shape.PAIRS, 24, 0)
    assert (training.shape, training.rows, training.steps, training.batch) == (Shape.PAIRS, 24, 4, 4)
    assert not (kitchen.folder / "out").exists()


def test_nothing_that_learns_is_refused(kitchen):
    guided = {"method": "self-guided", "head_width": 8}
    for stage in (SIMCSE | {"head": False}, SIMCSE, guided, {"method": "bootstrapped"}, {"method": "mlm"}):
        with pytest.raises(
            InputError, match=r"freeze_layers is 3, which freezes the whole model\. Expected some layer that learns"
        ):
            build_method_of(kitchen, stage | {"freeze_layers": 3})
    assert build_method_of(kitchen, SIMCSE | {"freeze_layers": 2, "head": False})


def build_method_of(kitchen, stage):
    (planned,) = kitchen.plan(stage).stages
    return planned.build(read_data(planned), str(kitchen.base), 1)


@pytest.mark.long
def test_a_base_that_lacks_unread_weights_is_the_same_each_time(kitchen):
    """RoBERTa's published weights have no pooler: transformers draws one at random."""
    folder = shutil.copytree(kitchen.base, kitchen.folder / "poolerless")
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    stage = {"method": "self-guided", "head_width": 8}
    torch.manual_seed(1)
    first = kitchen.run(stage, base="poolerless")
    made = kitchen.stages()
    torch.manual_seed(2)
    assert kitchen.run(stage, base="poolerless") == first
    assert kitchen.stages() == made


def test_a_run_that_was_stopped_goes_on(kitchen):
    stage = {"method": "self-guided", "head_width": 8, "steps": 12, "checkpoint_seconds": 0}
    whole = kitchen.run(stage, out="whole")[0]
    child = os.fork()
    if not child:
        kitchen.run(stage)
        os._exit(0)
    while not any(kitchen.folder.glob("out/stages/*/checkpoints/step-*")):
        assert os.waitpid(child, os.WNOHANG)[0] == 0, "it ended before it could be killed"
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not kitchen.stages()
    again = kitchen.run(stage)[0]
    assert again.stages[0]["outcome"]["resumed_at"] > 0
    assert again.stages[0]["fingerprint"] == whole.stages[0]["fingerprint"]
    assert again.after == whole.after
    assert (
        json.loads(next(kitchen.folder.glob("out/stages/*/result.json")).read_text())["key"] == whole.stages[0]["key"]
    )


def test_a_run_that_cannot_go_on_leaves_no_model(kitchen):
    with pytest.raises(TrainingStopped):
        kitchen.run(SIMCSE | {"learning_rate": 1e30, "log_every": 1})
    assert not kitchen.stages()
    assert not list(kitchen.folder.glob("out/stages/*/model"))
    assert list(kitchen.folder.glob("out/stages/*/stopped.json"))


def test_a_set_that_is_fine_tuned_on_has_a_score_per_seed_also_without_stages(kitchen):
    folder = kitchen.folder / "sets"
    (folder / "glue").mkdir(parents=True)
    for part, count in (("train", 32), ("dev", 40)):
        rows = [f"{n % 2}\t{('a dog', 'two men')[n % 2]} {n}" for n in range(count)]
        (folder / f"glue/CoLA.{part}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    evaluate = {"sets": ["glue/CoLA"], "data": str(folder)}
    results = kitchen.run(evaluate=evaluate, seeds=[3, 4])
    assert [result.seed for result in results] == [3, 4]
    assert len(list((kitchen.folder / "out" / "scores").iterdir())) == 3  # the base as it is, and per seed with [CLS]
    assert kitchen.run(evaluate=evaluate, seeds=[3, 4]) == results
    assert len(kitchen.run(evaluate={"sets": ["scored.tsv"]}, seeds=[3, 4])) == 1


def test_the_user_then_accelerate_then_the_caller_choose_the_precision(tmp_path, monkeypatch):
    def started():
        return start_accelerator((), tmp_path, lambda device: "bf16").mixed_precision

    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    assert start_accelerator((), tmp_path).mixed_precision == "no"
    assert started() == "bf16"
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    assert started() == "no"
    with running_on("cpu", "bf16"):
        assert started() == "bf16"
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    with running_on("cpu", "fp32"):
        assert started() == "no"
