"""A table runs the rows whose parts are here, and says of the others what they lack, whence and whither."""

from dataclasses import replace

import pytest
from accelerate import Accelerator

from sentloom.lab.recipe import read_recipe
from sentloom.lab.reproduction import Lack, NotRun, Reproduction, run_table, scored_in, with_earlier
from sentloom.lab.results import Row
from tests.engine.conftest import COMMON


@pytest.fixture
def table(kitchen, monkeypatch, tmp_path):
    """A table of three rows, of which one needs a file and one a model of the hub, and a quoted one."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("OURS", raising=False)
    path = kitchen.recipe({"name": "s", "method": "simcse", "dropout": 0.1}, seeds=[1, 2])
    more = """
title: Table 1
variants:
  here: {published: {scored.tsv: 50.0}}
  no file: {s.data: "${OURS:-ours.txt}", published: {scored.tsv: 60.0}}
  no model: {base: owner/model, published: {scored.tsv: 70.0}}
quoted:
  theirs: {published: {scored.tsv: 80.0}, why: its weights are not published}
needs:
  OURS: "sentences, from example.org"
"""
    path.write_text(path.read_text() + more)
    return read_recipe(path)


def run(table, folder, told=None, **options):
    return run_table(table, folder, Accelerator(cpu=True), (told if told is not None else []).append, **options)


def test_rows_run_and_resume_beside_their_published_scores_and_the_others_say_what_they_lack(table, kitchen):
    reproduction = run(table, kitchen.folder / "out")
    assert reproduction.order == ("here", "no file", "no model")
    (name,) = reproduction.rows["here"].after
    assert reproduction.rows["here"].seeds == 2
    assert reproduction.rows["here"].deviation[name] is not None
    assert reproduction.rows["here"].published == {"scored.tsv": 50.0}
    assert reproduction.not_run["no file"].lacks == (
        Lack("data of s: ours.txt", "sentences, from example.org", "set OURS=FILE, or put it at ours.txt"),
    )
    (lack,) = reproduction.not_run["no model"].lacks
    assert (lack.what, lack.origin, lack.fetched) == ("base: owner/model", "https://huggingface.co/owner/model", True)
    assert reproduction.quoted["theirs"].published == {"scored.tsv": 80.0}
    assert set(reproduction.sets) == {name, "scored.tsv"}
    made, told = kitchen.stages(), []
    assert run(table, kitchen.folder / "out", told).rows == reproduction.rows
    assert kitchen.stages() == made
    assert any("done before" in line for line in told)


def test_some_rows_alone(table, kitchen):
    reproduction = run(table, kitchen.folder / "out", only=["no file"])
    assert (reproduction.order, reproduction.rows) == (("no file",), {})


def test_the_rows_of_an_earlier_run_stay_and_those_of_this_one_replace_theirs(table):
    before = Reproduction("Table 1", ("here", "no model"), {}, {"here": NotRun({}), "no model": NotRun({})})
    row = Row("here", 1, "b", {}, "b", {}, {}, {}, {}, 1.0, trained=True, transductive=False)
    now = Reproduction("Table 1", ("here", "no file"), {"here": row}, {"no file": NotRun({})})
    merged = with_earlier(now, before, table)
    assert (merged.order, list(merged.rows)) == (("here", "no file", "no model"), ["here"])
    assert set(merged.not_run) == {"no file", "no model"}
    assert with_earlier(now, None, table) is with_earlier(now, replace(before, tiny=True), table) is now


def test_a_row_runs_once_its_file_is_there(table, kitchen, monkeypatch):
    (kitchen.folder / "own.txt").write_text("\n".join(f"A sentence of mine, number {n}." for n in range(12)))
    monkeypatch.setenv("OURS", str(kitchen.folder / "own.txt"))
    again = read_recipe(table.path)
    assert set(run(again, kitchen.folder / "out", only=["no file"]).rows) == {"no file"}


def test_a_row_that_diverges_is_left_out(table, kitchen):
    plan = table.resolve("here")
    (stage,) = plan.stages
    wild = stage.model_copy(update={"settings": stage.settings.model_copy(update={"learning_rate": 1e30, "steps": 8})})
    broken = replace(table, plans={**table.plans, "here": replace(plan, stages=(wild,), seeds=(1,))})
    reproduction = run(broken, kitchen.folder / "wild", only=["here"])
    assert reproduction.rows == {}
    assert reproduction.not_run["here"].why.startswith("it stopped")


def test_the_sets_come_from_the_given_folder(kitchen, tmp_path):
    path = kitchen.recipe({"name": "s", "method": "simcse", **COMMON}, select={"on": "sts-b/dev", "every": 2})
    read = read_recipe(path)
    assert scored_in(read, None) is read
    plan = scored_in(read, tmp_path).resolve()
    assert (plan.evaluate.data, plan.select.data) == (str(tmp_path), str(tmp_path))


def test_a_set_that_the_folder_lacks_is_named(table, kitchen, tmp_path):
    plan = table.resolve("here")
    elsewhere = plan.evaluate.model_copy(update={"sets": ("STS12",), "data": str(tmp_path)})
    moved = replace(table, plans={**table.plans, "here": replace(plan, evaluate=elsewhere)})
    reproduction = run(moved, kitchen.folder / "out", only=["here"])
    assert "STS12" in reproduction.not_run["here"].why
