"""Alignment and uniformity as scores of a set equal those of `geometry`, and only STS sets have them."""

import numpy as np
import pytest

from sentloom.errors import InputError
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.geometry import ScoredPairs, geometry
from sentloom.evaluation.suites.geometry_task import geometry_task
from sentloom.evaluation.suites.set_source import SetSource

ROWS = [(5.0, "a b", "a c"), (1.0, "d", "e f g"), (4.5, "h i", "h"), (2.0, "k", "l m")]


class Letters:
    """A vector per text: how often each letter is in it."""

    def encode(self, texts, *, role="symmetric", show_progress=False):
        return np.array([[1.0 + text.count(letter) for letter in "abcdefghiklm"] for text in texts], np.float32)

    def fingerprint(self):
        return "letters"


def test_the_scores_are_those_of_geometry(tmp_path):
    (tmp_path / "sts").mkdir()
    lines = ["score\tsentence1\tsentence2", *("\t".join(map(str, row)) for row in ROWS)]
    (tmp_path / "sts" / "STSB.test.tsv").write_text("\n".join(lines) + "\n")
    task = geometry_task("sts-b", "uniformity", SetSource(tmp_path, checked=False))
    (scores,) = score_tasks(Letters(), [task])
    gold, left, right = zip(*ROWS, strict=True)
    expected = geometry(Letters().encode, ScoredPairs(left, right, np.array(gold)))
    assert task.main == "uniformity"
    assert scores["alignment"].value == pytest.approx(100 * expected.alignment)
    assert scores["uniformity"].value == pytest.approx(100 * expected.uniformity)


def test_other_sets_have_none(tmp_path):
    with pytest.raises(InputError, match="MR@alignment"):
        geometry_task("MR", "alignment", SetSource(tmp_path))
