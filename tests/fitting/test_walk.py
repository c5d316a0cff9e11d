"""The walk of a row in CONTRIBUTING is the one that a fit takes."""

import re
from pathlib import Path

import pytest

import sentloom
from tests.fitting import small_base
from tests.fitting.walk import walk_of_fit

CONTRIBUTING = Path(sentloom.__file__).parents[2] / "CONTRIBUTING.md"
MOST_FILES = 60


@pytest.mark.long  # it traces every call of a fit
def test_the_walk_in_contributing_is_that_of_a_row(tmp_path):
    lines = re.findall(r"^\d+\. `([\w/]+\.py)` `(\w+)`:", CONTRIBUTING.read_text("utf-8"), flags=re.MULTILINE)
    assert len(lines) > 40, "the list is there"
    assert len({file for file, _ in lines}) <= MOST_FILES
    data, base = small_base.pairs(tmp_path / "faq.tsv"), small_base.build_base(tmp_path)
    walk = walk_of_fit(data, tmp_path / "model", base=base, budget="30steps")
    calls = list(walk.calls)
    assert [line for line in lines if line not in walk.calls] == []
    assert lines == sorted(lines, key=calls.index)
