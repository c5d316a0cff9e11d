"""Joined data sets: every row keeps its file and line."""

import pytest

from sentloom.data import read
from sentloom.data.readers import join
from sentloom.errors import InputError
from tests.data.reading import put, rows


def test_rows_keep_their_order_file_and_line(tmp_path) -> None:
    left = read(put(tmp_path / "one.csv", "question,answer,id\na,b,7\n"))
    right = read(put(tmp_path / "two.tsv", "anchor\tpositive\tgenre\n\nc\td\tx\ne\tf\ty\n"))
    both = join([left, right])
    assert rows(both) == {"anchor": ["a", "c", "e"], "positive": ["b", "d", "f"]}
    places = [f"{tmp_path}/one.csv, line 2", f"{tmp_path}/two.tsv, line 3", f"{tmp_path}/two.tsv, line 4"]
    assert [both.place(row) for row in range(3)] == places
    assert (both.sources, both.ignored) == ((0, 1), ("id", "genre"))
    assert both.skipped == {"blank lines": 1}


def test_one_data_set_is_returned_as_it_is_and_the_order_changes_the_hash(tmp_path) -> None:
    left, right = (read(put(tmp_path / f"{text}.txt", text)) for text in ("one", "two"))
    assert join([left]) is left
    assert join([left, right]).sha256 != join([right, left]).sha256


def test_other_shapes_are_refused(tmp_path) -> None:
    texts, pairs = read(put(tmp_path / "a.txt", "a")), read(put(tmp_path / "b.csv", "question,answer\na,b\n"))
    with pytest.raises(InputError, match=r"b\.csv: its shape is pairs, but the shape of .*a\.txt is texts"):
        join([texts, pairs])
