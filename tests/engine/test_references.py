"""References to earlier stages."""

import pytest

from sentloom.engine.artifacts import named_part, named_stage


@pytest.mark.parametrize(
    ("value", "stage", "part"),
    [
        ("stage:nli", "nli", ""),
        ("stage:nli/pairs", "nli", "pairs"),
        ("stage", None, ""),
        ("data/nli.tsv", None, "nli.tsv"),
    ],
)
def test_a_reference_names_a_stage_and_perhaps_a_part(value, stage, part):
    assert (named_stage(value), named_part(value)) == (stage, part)
