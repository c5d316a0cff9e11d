"""A stored dataset is the same when it is opened: rows, origins, shape, hash, and what was skipped."""

from dataclasses import replace

import pytest

from sentloom.data import read
from sentloom.data.readers import join
from sentloom.engine.artifacts import content_key, open_dataset, store_dataset


@pytest.mark.parametrize(
    "lines",
    [
        ["anchor\tpositive", "a\tb", "c\td"],
        ["anchor\tpositive\tnegative", "a\tb\tc", "d\te\tf"],
        ["text", "one", "two"],
    ],
)
def test_what_is_stored_is_opened_the_same(tmp_path, lines):
    for name in ("first", "second"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    both = join([read(tmp_path / f"{name}.tsv") for name in ("first", "second")])
    data = replace(both, skipped={"blank lines": 3}, notes=("read as it is",))
    store_dataset(data, tmp_path / "data.parquet")
    again = open_dataset(tmp_path / "data.parquet")
    assert again.table.equals(data.table)
    names = ("shape", "files", "place_name", "sha256", "used", "skipped", "notes", "sources")
    assert [getattr(again, name) for name in names] == [getattr(data, name) for name in names]
    assert again.place(len(again) - 1) == data.place(len(data) - 1)


def test_a_key_depends_on_values_and_not_on_their_order():
    assert content_key(a=1, b={"x": 1, "y": 2}) == content_key(b={"y": 2, "x": 1}, a=1)
    assert len({content_key(a=value) for value in (1, 2, None, "1", [1])}) == 5
