"""What `reproduce` refuses; what it runs is tested in tests/lab/test_reproduction.py."""

import pytest

import sentloom
from sentloom.errors import InputError


def test_an_unknown_scale_and_no_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"scale: found 'huge'\. Expected 'paper' or 'tiny'"):
        sentloom.lab.reproduce("bsl/table-1", tmp_path / "out", scale="huge")
    with pytest.raises(InputError, match="tables: no table is given"):
        sentloom.lab.reproduce([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
