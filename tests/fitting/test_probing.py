"""The probes of labelled test rows: beside the measure of their rows if there is time, and never without."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import held_out_part
from sentloom.fitting.verify import Duel, with_probes
from tests.fitting.small_job import job_in, still
from tests.fitting.test_by_dimension import Coded
from tests.small_data import build_dataset


def labelled(kind, size):
    return build_dataset(Shape.CLASSIFICATION, [(f"{kind} {n}", "xyz"[n % 3]) for n in range(size)])


@pytest.fixture(scope="module")
def split():
    return Split(labelled("train", 120), labelled("val", 30), labelled("test", 30), labelled("none", 0))


def test_only_test_rows_have_a_probe(split):
    parts = [held_out_part("t.csv", split, side, (), 1000) for side in ("validation", "test")]
    assert [part.probe is not None for part in parts] == [False, True]


def test_the_probe_is_measured_after_what_decides_if_there_is_time(split, tmp_path):
    part, duel = held_out_part("t.csv", split, "test", (), 1000), Duel(Coded(4), Coded(8), open_memory(tmp_path))
    measures, _ = duel.measured(part.tasks, "deciding")
    assert set(measures[0].also) == {"map"}
    late = job_in(tmp_path, clock=still(60.0, gone=60.0))
    assert with_probes(duel, [part], measures, late) == tuple(measures)
    assert late.plan.changes == ("the linear probe of t.csv is not measured",)
    (probed,) = with_probes(duel, [part], measures, job_in(tmp_path))
    assert set(probed.also) == {"map", "probe"}
