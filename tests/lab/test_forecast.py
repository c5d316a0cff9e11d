"""A forecast times every stage on a sample and leaves nothing behind."""

import pytest
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.errors import SentloomError
from sentloom.lab.forecast import forecast

FEW = {"batch": 4, "learning_rate": 1e-3, "max_length": 32}


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_stage_is_timed_and_nothing_is_written(work, bert):
    before = files_in(work)
    spans = stage("views", name="spans", kind="spans", data=str(work / "texts.txt"))
    learn = stage("contrastive", name="learn", data="stage:spans", steps=6, **FEW)
    again = stage("simcse", name="again", data=str(work / "texts.txt"), epochs=2, **FEW)
    made, first, second = forecast(Plan("p", str(bert), (spans, learn, again), seeds=(1,)), Accelerator(cpu=True))
    assert files_in(work) == before
    assert (made.stage, made.steps, made.shape) == ("spans", 0, Shape.PAIRS)
    assert (first.steps, first.batch, first.rows) == (6, 4, made.rows)
    texts = len((work / "texts.txt").read_text().splitlines())
    assert (second.rows, second.steps) == (texts, 2 * (texts // 4))
    assert min(made.seconds, first.seconds, second.seconds) > 0


def test_a_missing_file_is_an_error(bert, tmp_path):
    learn = stage("simcse", name="one", data=str(tmp_path / "none.txt"), steps=2, **FEW)
    with pytest.raises(SentloomError, match=r"none\.txt"):
        forecast(Plan("p", str(bert), (learn,), seeds=(1,)), Accelerator(cpu=True))
