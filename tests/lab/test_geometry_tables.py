"""Tables of geometry and of layers, as people read them."""

import numpy as np

from sentloom.evaluation.geometry import Geometry, UniformityVariant
from sentloom.lab.geometry import Sweep
from sentloom.lab.geometry_figures import geometry, sweep
from tests.report.printing import printed


def some_geometry(variant=UniformityVariant.REFERENCE):
    return Geometry(0.1234, -2.5678, 0.75, 0.0456, 210.04, 384, 338, 2552, variant)


def test_geometry_has_one_model_a_row():
    text = printed(geometry({"embedded": some_geometry(), "[odd] name": some_geometry()}))
    assert "Geometry: 338 positive pairs, 2,552 sentences" in text
    row = next(line.split() for line in text.splitlines() if "embedded" in line)
    assert row == ["embedded", "0.123", "-2.568", "0.046", "0.750", "210.0", "of", "384"]
    assert "[odd] name" in text
    assert "variant" not in text


def test_a_reading_that_is_not_the_reference_is_said():
    assert "paired with themselves" in printed(geometry({"m": some_geometry(UniformityVariant.SENTENCE_T5)}))
    assert "not squared" in printed(geometry({"m": some_geometry(UniformityVariant.PRINTED)}))


def test_sweep_names_the_best():
    text = printed(sweep("small", Sweep((0, 1), ("first", "max"), np.array([[1.0, 2.345], [9.5, -3.0]]))))
    assert "Layers of small" in text
    assert [line.split() for line in text.splitlines() if line.strip().startswith("1")] == [["1", "9.50", "-3.00"]]
    assert "best: first pooling of layer 1, 9.50" in text
