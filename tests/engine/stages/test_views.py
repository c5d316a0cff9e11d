"""Views as a stage: the pairs that it stores, what it says of them, its key and its forecast."""

import pytest
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.engine.stages.views import located_views
from sentloom.lab.forecast import forecast
from sentloom.writing.views.settings import BackTranslation, MaskFill, Pivot, ReadyPairs, Synonyms

TEXTS = ["a dog sleeps", "rain falls", "the bus is late"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    rows = [f"{text}\t{text.upper()}" for text in TEXTS[:2]]
    (tmp_path / "ready.tsv").write_text("\n".join(["anchor\tpositive", *rows]) + "\n")
    return tmp_path


def ready(files, **options):
    made = {"name": "made", "kind": "file", "data": str(files / "texts.txt"), "file": str(files / "ready.tsv")}
    return Plan("p", None, (stage("views", **made, **options),), seeds=(1,))


def test_the_pairs_are_stored_with_what_was_left_out(files):
    (runner,) = prepare([ready(files, missing="skip")], files / "out", Accelerator(cpu=True), lambda text: None)
    (result,) = runner.run()
    rows = runner.artifacts["made"].rows("")
    assert [(row["anchor"], row["positive"]) for row in rows] == [(text, text.upper()) for text in TEXTS[:2]]
    record = result.stages[0]
    assert (record["produced"]["rows"], record["produced"]["shape"]) == (2, "pairs")
    assert sum(record["produced"]["skipped"].values()) == 1
    said = runner.plan.stages[0].describe(record)
    assert said.startswith("2 pairs; 1 ")


def test_another_file_of_pairs_is_another_stage(files):
    def place():
        (runner,) = prepare([ready(files, missing="skip")], files / "out", Accelerator(cpu=True), lambda text: None)
        runner.run()
        return runner.artifacts["made"].fingerprint

    first = place()
    assert place() == first
    (files / "ready.tsv").write_text("anchor\tpositive\na dog sleeps\tone dog is asleep\n")
    assert place() != first


def test_a_forecast_makes_pairs_of_the_right_number(files):
    (ahead,) = forecast(ready(files, missing="skip"), Accelerator(cpu=True))
    assert (ahead.rows, ahead.shape, ahead.steps) == (2, Shape.PAIRS, 0)


@pytest.mark.parametrize(
    ("settings", "located"),
    [
        (ReadyPairs(file="a.tsv"), ReadyPairs(file="/there/a.tsv")),
        (MaskFill(model="m"), MaskFill(model="/there/m")),
        (
            BackTranslation(pivots=(Pivot(forward="f", backward="b"),)),
            BackTranslation(pivots=(Pivot(forward="/there/f", backward="/there/b"),)),
        ),
        (Synonyms(), Synonyms()),
    ],
)
def test_paths_and_models_of_each_kind_are_located(settings, located):
    assert located_views(settings, "/there/{}".format) == located


def test_another_kind_with_default_options_is_another_stage(files):
    (files / "documents.txt").write_text("One dog sleeps. It rains. The bus is late. A cat eats.\n" * 2)
    made = {"name": "made", "data": str(files / "documents.txt")}
    plans = [Plan(kind, None, (stage("views", kind=kind, **made),), seeds=(1,)) for kind in ("spans", "neighbours")]
    runners = prepare(plans, files / "out", Accelerator(cpu=True), lambda text: None)
    for runner in runners:
        runner.run()
    first, second = (runner.artifacts["made"].source for runner in runners)
    assert first != second
