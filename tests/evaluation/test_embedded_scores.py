"""The embedded encoder on real sets: the published numbers, through our reader, encoder and scorer."""

from pathlib import Path

import pytest

from sentloom.encoder import Encoder
from sentloom.evaluation import evaluate_sts, load_suite

SHARED = Path(__file__).parents[3] / "shared/data"


@pytest.mark.skipif(not (SHARED / "sts/STSB.test.tsv").is_file(), reason="the STS sets are not beside the repository")
@pytest.mark.parametrize(("name", "published"), [("STS-B", 82.03), ("STS13", 80.60)])
def test_spearman_is_the_published_one(name, published):
    result = evaluate_sts(Encoder.load("embedded").encode, load_suite(SHARED, [name]))
    assert result.notes == ()
    assert result.sets[0].scores["all"].spearman == pytest.approx(published, abs=0.05)
