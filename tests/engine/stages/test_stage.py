"""The contract of a stage: what its key depends on, what it refers to, and how its paths are located."""

import pytest
from accelerate import Accelerator

from sentloom.data import read
from sentloom.engine.artifacts import Artifact
from sentloom.engine.building import stage
from sentloom.engine.stages.stage import PREVIOUS, Context, Inputs

TEXTS = read(["One.", "Two."])
MODEL = Artifact("encoder", "somewhere", "abc")


def simcse(**values):
    return stage("simcse", **{"name": "one", "data": "texts.txt", "batch": 4, "steps": 3} | values)


def key(stage, *, seed=1, data=TEXTS, model=MODEL, folder="."):
    context = Context(folder, Accelerator(cpu=True), print, seed)
    return stage.key(Inputs((model,), data), context)


@pytest.mark.parametrize(
    "same",
    [
        {"name": "two"},
        {"data": "elsewhere.txt"},  # the content of the rows counts, not their place
        {"log_every": 7, "checkpoint_seconds": 9.0},
        {"temperature": 0.05},  # the default
    ],
)
def test_the_key_leaves_out_what_changes_no_number(same):
    assert key(simcse(**same)) == key(simcse())


@pytest.mark.parametrize("other", [{"temperature": 0.07}, {"steps": 4}, {"learning_rate": 1e-4}, {"pooling": "max"}])
def test_the_key_has_every_option_and_setting(other):
    assert key(simcse(**other)) != key(simcse())


def test_the_key_has_seed_rows_and_model():
    keys = [
        key(simcse()),
        key(simcse(), seed=2),
        key(simcse(), data=read(["One.", "Three."])),
        key(simcse(), model=Artifact("encoder", "somewhere", "def")),
        key(stage("mlm", name="one", data="texts.txt", batch=4, steps=3)),
    ]
    assert len(set(keys)) == len(keys)


def test_the_key_of_a_data_stage_has_no_seed():
    spans = stage("views", name="spans", kind="spans", data="texts.txt")
    assert key(spans, seed=1) == key(spans, seed=2)


def test_what_a_stage_refers_to():
    mined = stage("mine", name="mined", data="pairs.tsv", model="stage:one")
    learn = stage("contrastive", name="learn", data=["stage:mined", "more.tsv"], batch=4, steps=3)
    assert (mined.models(), mined.references()) == (("stage:one",), ["one"])
    assert (learn.models(), learn.references()) == ((PREVIOUS,), ["mined"])


def test_every_path_and_model_is_located():
    mined = stage("mine", name="mined", data="pairs.tsv", model="model", guide="guide", corpus=["more.txt"])
    located = mined.located("/there/{}".format)
    assert (located.data, located.model) == (("/there/pairs.tsv",), "/there/model")
    assert (located.options.guide, located.options.corpus) == ("/there/guide", ("/there/more.txt",))
