"""Pairs from a file are matched to sentences by the original."""

import pytest

from sentloom.errors import DataError, InputError
from sentloom.writing.views.pairs import make_pairs
from sentloom.writing.views.settings import ReadyPairs
from tests.writing.views.reading import file, lines, rows


def test_ready_pairs_are_found_by_the_original(tmp_path):
    data = file(tmp_path, "a.txt", "one\ntwo\nthree\n")
    file(tmp_path, "pairs.tsv", "anchor\tpositive\nthree\tIII\none\tI\none\tanother\nfour\tIV\n")
    name = str(tmp_path / "pairs.tsv")
    with pytest.raises(DataError) as error:
        make_pairs(data, ReadyPairs(file=name))
    assert error.value.total == 1
    assert "a.txt, line 2: 'two' has no view" in str(error.value)
    pairs = make_pairs(data, ReadyPairs(file=name, missing="skip"))
    assert rows(pairs) == [("one", "I"), ("three", "III")]
    assert lines(pairs) == [1, 3]
    assert pairs.skipped == {"sentences without a view": 1}


def test_every_missing_original_is_counted(tmp_path):
    data = file(tmp_path, "a.txt", "".join(f"text {number}\n" for number in range(25)))
    file(tmp_path, "pairs.tsv", "anchor\tpositive\ntext 3\tIII\n")
    with pytest.raises(DataError, match="24 in all") as error:
        make_pairs(data, ReadyPairs(file=str(tmp_path / "pairs.tsv")))
    assert len(error.value.problems) == 10


def test_ready_pairs_of_another_shape_are_refused(tmp_path):
    data = file(tmp_path, "a.txt", "one\n")
    with pytest.raises(InputError, match="the file contains texts"):
        make_pairs(data, ReadyPairs(file=str(tmp_path / "a.txt")))
