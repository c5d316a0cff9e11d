"""A score is a metric over items, within groups if there are any."""

import numpy as np
import pytest

from sentloom.evaluation.task import Score

# Predicted and gold: groups 0 and 1 have 3 and 1 items, of which 1 and 1 are right.
ITEMS = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
GROUPS = np.array([0, 0, 0, 1])


def test_values_by_hand():
    assert Score("accuracy", ITEMS).value == pytest.approx(100 * 2 / 4)
    assert Score("accuracy", ITEMS, GROUPS).value == pytest.approx(100 * (1 / 3 + 1) / 2)
    assert Score("accuracy", ITEMS, GROUPS, weighted=True).value == pytest.approx(100 * (3 * 1 / 3 + 1 * 1) / 4)
