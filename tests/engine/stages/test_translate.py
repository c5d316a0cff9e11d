"""Translating as a stage: every distinct sentence beside its translation, cached, and trained on."""

import pyarrow.parquet as pq
import pytest
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.errors import InputError
from sentloom.lab.forecast import forecast
from sentloom.writing.views.translation import ModelTranslation
from tests.writing.views.small_parts import build_translation_model

TEXTS = ["a small cat sleeps", "the dog barks at night", "rain falls on the roof", "a small cat sleeps", "birds sing"]


@pytest.fixture(scope="session")
def marian(tmp_path_factory):
    return build_translation_model(tmp_path_factory.mktemp("marian"), seed=1)


@pytest.fixture
def plan(tmp_path, bert, marian):
    (tmp_path / "english.txt").write_text("\n".join(TEXTS) + "\n")
    german = stage("translate", name="german", data=[str(tmp_path / "english.txt")], model=str(marian), beams=1)
    learn = stage("cross-lingual", name="learn", data=["stage:german"], queue=0, batch=2, steps=2, max_length=16)
    return Plan("p", base=str(bert), stages=(german, learn))


def test_translations_are_made_once_and_trained_on(tmp_path, plan, marian):
    (runner,) = prepare([plan], tmp_path / "out", Accelerator(cpu=True), lambda text: None)
    (result,) = runner.run()
    german, learn = result.stages
    rows = runner.artifacts["german"].rows("")
    sources = list(dict.fromkeys(TEXTS))
    made = list(ModelTranslation(str(marian), 1, "").views(sources))
    expected = [pair for pair in zip(sources, made, strict=True) if pair[1]]
    assert rows.shape is Shape.PARALLEL
    assert list(zip(rows.column("source").to_pylist(), rows.column("target").to_pylist(), strict=True)) == expected
    assert (german["produces"], learn["data"]["rows"], learn["data"]["sha256"]) == ("dataset", len(rows), rows.sha256)
    assert pq.read_table(tmp_path / "out" / german["place"] / "data.parquet").num_rows == len(rows)
    told = []
    (again,) = prepare([plan], tmp_path / "out", Accelerator(cpu=True), told.append)
    assert again.run() == [result]
    assert any("german: done before" in line for line in told)


def test_a_forecast_times_a_few(plan):
    german, learn = forecast(plan, Accelerator(cpu=True))
    assert (german.rows, german.shape, learn.rows, learn.shape) == (4, Shape.PARALLEL, 4, Shape.PARALLEL)
    assert german.seconds > 0


def test_a_language_beside_a_model_is_refused_before_anything_runs(tmp_path, plan, marian):
    both = stage("translate", data=list(plan.stages[0].data), model=str(marian), into="pt")
    with pytest.raises(InputError, match="both the language 'pt' and the model"):
        prepare([Plan("p", base=None, stages=(both,))], tmp_path / "out", Accelerator(cpu=True), lambda text: None)
    assert not (tmp_path / "out").exists()
