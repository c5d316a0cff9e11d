"""The reference: the best base on what chooses among the runs."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.bases import load_bases
from sentloom.fitting.planning import score_bases, strongest
from sentloom.fitting.prepare import Prepared, prepare_inputs
from sentloom.fitting.tasks import HeldOut
from tests.fitting import small_base
from tests.fitting.small_job import job_in
from tests.fitting.test_request import request
from tests.small_data import build_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    bases = tmp_path_factory.mktemp("bases")
    small_base.build_base(bases)
    return bases


def prepared(tasks):
    """Validation rows that ask these tasks."""
    part = HeldOut("faq.csv", build_dataset(Shape.PAIRS, [("a", "b")]), tasks, ())
    return Prepared((), (), (), (), (part,), (part,), (), tasks[0])


def test_the_strongest_base_has_the_best_mean_over_tasks(folder, tmp_path):
    """Each task knows the bases by the width of their first vector; the means are 45 and 50."""
    first, second = load_bases(request(base=(str(folder / "base"), str(folder / "plain"))))
    vector = {base.label: base.encoder.encode("bano") for base in (first, second)}

    def task(name, values):
        def score(lookup):
            (shown,) = lookup(["bano"])
            own = min(vector, key=lambda label: np.abs(vector[label] - shown).sum())
            return {"mean": Score("mean", np.full((4, 1), values[own]))}

        return Task(name, "mean", {"symmetric": ["bano"]}, score, sha256=name)

    tasks = (task("a", {"base": 0.9, "plain": 0.4}), task("b", {"base": 0.0, "plain": 0.6}))
    both, only = (prepared(of) for of in (tasks, tasks[:1]))
    job = job_in(tmp_path)
    standings = score_bases((first, second), both, job)
    assert [standing.value for standing in standings] == pytest.approx([45, 50])
    assert strongest(standings) is second
    assert strongest(score_bases((first, second), only, job)) is first


def test_with_few_rows_all_folds_count(folder, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv", 80)
    asked = request(data=(str(data),), output=tmp_path / "model", base=(str(folder / "base"),))
    (base,) = load_bases(asked)
    few = prepare_inputs(asked, [base.encoder], [].append)
    assert few.folds
    (standing,) = score_bases([base], few, job_in(tmp_path))
    (score,) = standing.scores
    assert len(score.items) == sum(len(fold.splits[0].validation) for fold in few.folds)
