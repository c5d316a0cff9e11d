"""A classifier with hidden units has the seeds of the plan, as in Table 9 of Self-guided; a linear one has none."""

import numpy as np
import pytest

from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.evaluation.probes.protocols import Probe, train_and_test

TEXTS = [f"{'a good' if row % 2 else 'a bad'} film number {row % 17}" for row in range(120)]


@pytest.fixture
def folder(tmp_path):
    rows = [f"{row % 2}\t{text}" for row, text in enumerate(TEXTS)]
    (tmp_path / "senteval").mkdir()
    (tmp_path / "senteval" / "MR.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    return str(tmp_path)


def test_each_seed_of_the_plan_is_one_of_the_classifier(folder):
    wide = find_evaluation_set("MR", folder, hidden=5)
    assert wide.has_seed
    first, second = wide.under(1), wide.under(2)
    assert [scored.task.settings.others["seed"] for scored in (first, second)] == [1, 2]
    assert first.task.settings.recorded() != second.task.settings.recorded()  # scores are cached by these
    assert first.task.sha256 == second.task.sha256
    linear = find_evaluation_set("MR", folder)
    assert not linear.has_seed
    assert linear.under(1) is linear


def test_the_seed_decides_weights_batches_and_folds():
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 6)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + random.normal(size=80) > 0).astype(int)
    answers = [
        train_and_test(x[:60], y[:60], x[60:], y[60:], Probe("fast", hidden=4, seed=seed)) for seed in (1, 1, 2, 1111)
    ]
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])
    assert np.array_equal(answers[3], train_and_test(x[:60], y[:60], x[60:], y[60:], Probe("fast", hidden=4)))
