"""A table runs the rows whose parts are here, and says of the others what they lack, whence and whither."""

from dataclasses import replace

import pytest
from accelerate import Accelerator

from sentloom.lab.recipe import read_recipe
from sentloom.lab.reproduction import (
    Lack,
    NotRun,
    Reproduction,
    Table,
    reproduction_markdown,
    run_table,
    scored_in,
    with_earlier,
)
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


def run(recipe, folder, told=None, only=(), **options):
    table = Table(recipe, folder, Accelerator(cpu=True), (told if told is not None else []).append, **options)
    return run_table(table, only)


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


def test_a_set_that_is_missing_leaves_out_a_column_and_marks_the_mean(table, kitchen):
    """STS12 is in the folder, STS16 is not: the row is scored on the first, and its means say so."""
    (kitchen.folder / "sts").mkdir()
    (kitchen.folder / "sts" / "STS12.tsv").write_text((kitchen.folder / "scored.tsv").read_text())
    plan = table.resolve("here")
    sets, means = ("STS12", "STS16"), {"both": ("STS12", "STS16"), "none": ("STS16",)}
    wanted = plan.evaluate.model_copy(update={"sets": sets, "data": str(kitchen.folder), "mean": True, "means": means})
    moved = replace(table, plans={**table.plans, "here": replace(plan, evaluate=wanted)})
    told = []
    row = run(moved, kitchen.folder / "out", told, only=["here"]).rows["here"]
    assert row.after["mean"] == row.after["both"] == row.after["STS12"]
    assert not {"STS16", "none"} & set(row.after)
    assert {"mean", "both"} <= set(row.not_comparable)
    assert any(note.startswith("without STS16: the folder") for note in row.notes["mean"])
    assert any("STS16 is left out" in line for line in told)


def test_a_row_says_what_it_costs_before_it_starts(table, kitchen):
    told = []
    run(table, kitchen.folder / "out", told, only=["here"])
    assert told[0].startswith("sentloom lab reproduce")
    assert "GPU memory" in told[0]
    told.clear()
    run(table, kitchen.folder / "tiny", told, only=["here"], tiny=True)
    assert not any("GPU memory" in line for line in told)


def test_changed_settings_are_in_the_table_and_never_beside_unchanged_rows(table):
    before = Reproduction("Table 1", ("here",), {}, {"here": NotRun({})})
    now = Reproduction("Table 1", ("no file",), {}, {"no file": NotRun({})}, changes=("s.batch=8",))
    assert with_earlier(now, before, table) is now
    assert "not the paper's settings: s.batch=8" in reproduction_markdown(now)


def test_published_deviations_are_beside_published_scores(table):
    row = Row("here", 1, "b", {}, "b", {}, {"STS-B": 76.0}, {"STS-B": None}, {"STS-B": 77.23}, 1.0, True, False)
    shown = Reproduction("Table 1", ("here",), {"here": replace(row, published_deviation={"STS-B": 0.43})})
    assert "| 77.23 ± 0.43 |" in reproduction_markdown(shown)
    assert "| -1.23 |" in reproduction_markdown(shown)
