"""Mining as a stage: triplets by the encoder of the stage before, reused, and forecast."""

import json
import shutil

import numpy as np
import pytest
import yaml
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, to_yaml
from sentloom.engine.runner import prepare
from sentloom.errors import InputError, RecipeError
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe
from sentloom.search.cross_encoder import CrossEncoder
from tests.search.small_cross_encoders import build_cross_encoder

FEW = {"batch": 4, "steps": 2, "learning_rate": 1e-3}


@pytest.fixture
def faq(tmp_path):
    topics = "cat dog bird fish horse cow sheep goat duck hen".split()
    rows = [
        f"where is the {topic}\tthe {topic} is in the {other} house"
        for topic, other in zip(topics, topics[::-1], strict=True)
    ]
    (tmp_path / "faq.tsv").write_text("\n".join(["anchor\tpositive", *rows]) + "\n")
    return [row.split("\t") for row in rows]


def plan(folder, base, *before, **mining):
    mined = stage("mine", name="mined", data=[str(folder / "faq.tsv")], margin=-1.0, **mining)
    learn = stage("contrastive", name="learn", data=["stage:mined"], **FEW)
    return Plan("p", base=str(base), stages=(*before, mined, learn), seeds=(1, 2))


def run(plan, folder):
    (runner,) = prepare([plan], folder, Accelerator(cpu=True), lambda text: None)
    return runner, runner.run()


def hardest(encoder, rows):
    """By hand: for each anchor the nearest positive of another row."""
    anchors, positives = (encoder.encode([row[side] for row in rows]) for side in (0, 1))
    cosines = anchors @ positives.T / np.outer(np.linalg.norm(anchors, axis=1), np.linalg.norm(positives, axis=1))
    np.fill_diagonal(cosines, -2)
    return [rows[at][1] for at in cosines.argmax(axis=1)]


def test_the_base_mines_once_for_all_seeds(tmp_path, bert, faq):
    runner, results = run(plan(tmp_path, bert), tmp_path / "out")
    mined, learn = results[0].stages
    assert runner.artifacts["mined"].rows("").column("negatives").to_pylist() == [
        [text] for text in hardest(Encoder.load(bert), faq)
    ]
    assert results[1].stages[0] == mined
    assert (mined["once"], mined["produced"]["rows"], learn["data"]["rows"]) == (True, 10, 10)
    assert len(list((tmp_path / "out/stages").glob("mined-*"))) == 1
    record = next((tmp_path / "out/stages").glob("mined-*/result.json"))
    assert json.loads(record.read_text())["input"] == Encoder.load(bert).fingerprint()
    assert runner.artifacts["mined"].rows("").place(3) == f"{tmp_path / 'faq.tsv'}, line 5"  # origins are stored


def test_the_encoder_of_the_stage_before_mines_under_every_seed(tmp_path, bert, faq):
    first = stage("simcse", name="first", data=[str(tmp_path / "faq.tsv")], pooling="mean", **FEW)
    whole = plan(tmp_path, bert, first)
    assert whole.once == set()
    runner, results = run(whole, tmp_path / "out")
    assert [finished["input"] for finished in results[1].stages[1:2]] == [results[1].stages[0]["fingerprint"]]
    assert results[0].stages[1]["key"] != results[1].stages[1]["key"]
    encoder = Encoder.load(runner.artifacts["first"].source)
    negatives = runner.artifacts["mined"].rows("").column("negatives").to_pylist()
    assert negatives == [[text] for text in hardest(encoder, faq)]


def test_rows_evenly_spaced_and_a_corpus(tmp_path, bert, faq):
    (tmp_path / "corpus.txt").write_text("\n".join(f"some text {n}" for n in range(30)) + "\n")
    runner, _ = run(plan(tmp_path, bert, rows=4, corpus=[str(tmp_path / "corpus.txt")]), tmp_path / "out")
    rows = runner.artifacts["mined"].rows("")
    assert rows.column("anchor").to_pylist() == [faq[at][0] for at in (0, 3, 6, 9)]
    assert all(text.startswith("some text ") for (text,) in rows.column("negatives").to_pylist())


def test_a_forecast_has_a_row_for_mining_and_triplets_for_training(tmp_path, bert, faq):
    mined, learn = forecast(plan(tmp_path, bert), Accelerator(cpu=True))
    assert (mined.rows, mined.shape, mined.steps, learn.rows, learn.shape, learn.steps) == (
        *(10, Shape.TRIPLETS, 0),
        *(10, Shape.TRIPLETS, 2),
    )
    assert mined.seconds > 0


def test_in_a_recipe_there_and_back(tmp_path, bert, faq):
    stages = [
        {"name": "mined", "method": "mine", "data": "faq.tsv", "negatives": 2},
        {"name": "learn", "method": "contrastive", "data": "stage:mined"},
    ]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"base": str(bert), "stages": stages}))
    read = read_recipe(tmp_path / "recipe.yaml").resolve()
    assert (read.stages[0].options.negatives, read.stages[0].data) == (2, (str(tmp_path / "faq.tsv"),))
    (tmp_path / "again.yaml").write_text(to_yaml(read))
    assert read_recipe(tmp_path / "again.yaml").resolve() == read


def test_what_is_refused(tmp_path, bert, faq):
    with pytest.raises(RecipeError, match="depth is 3, which must be more than skip, 3"):
        stage("mine", data=["a.tsv"], depth=3, skip=3)
    (tmp_path / "faq.tsv").write_text("text\none text\nanother text\n")
    with pytest.raises(InputError, match=r"stage mined: the shape of its data is .*\. Expected pairs"):
        prepare([plan(tmp_path, bert)], tmp_path / "out", Accelerator(cpu=True), lambda text: None)


def test_a_guide_counts_by_its_content(tmp_path, bert, faq):
    guided = plan(tmp_path, bert, guide=str(bert), at_most=0.99)
    (runner,) = prepare([guided], tmp_path / "out", Accelerator(cpu=True), lambda text: None)
    mined = guided.stages[0]
    inputs, context = runner.inputs(mined, None), runner.context(1)
    options = mined.depends(inputs, context)["options"]
    assert options["guide"] == Encoder.load(bert).fingerprint()
    assert options["at_most"] == 0.99
    facts = mined.run(inputs, tmp_path / "place", context)
    assert 0 < facts["produced"]["rows"] <= 10


@pytest.fixture
def teacher(tmp_path):
    return build_cross_encoder(tmp_path / "teacher")


def test_a_teacher_rejects_candidates_and_counts_as_what_it_is(tmp_path, bert, faq, teacher):
    asked = {"teacher": str(teacher), "teacher_margin": 0.0}
    runner, _ = run(plan(tmp_path, bert, **asked), tmp_path / "out")
    score = CrossEncoder.load(teacher).score
    mined = runner.artifacts["mined"].rows("").table.select(["anchor", "positive", "negatives"]).to_pylist()
    assert mined
    for row in mined:
        positive, negative = score([(row["anchor"], row["positive"]), (row["anchor"], row["negatives"][0])])
        assert negative <= positive + 1e-5
    shutil.copytree(teacher, tmp_path / "copy")
    run(plan(tmp_path, bert, **asked | {"teacher": str(tmp_path / "copy")}), tmp_path / "out")
    assert len(list((tmp_path / "out/stages").glob("mined-*"))) == 1
    run(plan(tmp_path, bert), tmp_path / "out")
    assert len(list((tmp_path / "out/stages").glob("mined-*"))) == 2
    without, with_teacher = (
        forecast(planned, Accelerator(cpu=True))[0].seconds
        for planned in (plan(tmp_path, bert), plan(tmp_path, bert, **asked))
    )
    assert with_teacher > without
