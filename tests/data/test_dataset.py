import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.dataset import FILE, LINE, Dataset, shape_schema
from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError


def triplets(sizes: list[int]) -> Dataset:
    """Make rows numbered from 0, in batches of the given sizes."""
    total = sum(sizes)
    columns = {
        "anchor": pa.array([f"a{n}" for n in range(total)], pa.large_string()),
        "positive": pa.array([f"p{n}" for n in range(total)], pa.large_string()),
        "negatives": pa.array([[f"n{n}"] * (n % 3 + 1) for n in range(total)], pa.list_(pa.large_string())),
        FILE: pa.array([n % 2 for n in range(total)], pa.int32()),
        LINE: pa.array(range(10, 10 + total), pa.int64()),
    }
    whole = pa.table(columns)
    starts = np.cumsum([0, *sizes])
    parts = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    return Dataset(Shape.TRIPLETS, pa.concat_tables(parts), ("x.csv", "y.csv"), "line", "")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.data())
def test_take_returns_the_requested_rows_for_any_batches(sizes: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, sum(sizes) - 1)))
    taken = triplets(sizes).take(rows)
    assert list(taken) == ["anchor", "positive", "negatives"]
    assert taken["anchor"] == [f"a{n}" for n in rows]
    assert taken["negatives"] == [[f"n{n}"] * (n % 3 + 1) for n in rows]


def test_take_handles_columns_with_different_chunks() -> None:
    dataset = triplets([3])
    other = pa.chunked_array([["x"], ["y", "z"]])
    mixed = Dataset(Shape.TRIPLETS, dataset.table.append_column("subset", other), dataset.files, "line", "")
    assert mixed.take([2, 0])["subset"] == ["z", "x"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.data())
def test_row_numbers_in_a_list_or_an_array_give_these_rows(sizes: list[int], data: st.DataObject) -> None:
    total = sum(sizes)
    rows = data.draw(st.lists(st.integers(-total, total - 1)))
    for given_rows in (rows, np.array(rows, np.int32), tuple(rows)):
        chosen = triplets(sizes)[given_rows]
        assert isinstance(chosen, Dataset)
        assert chosen["anchor"] == [f"a{n % total}" for n in rows]
        assert [chosen.place(at) for at in range(len(chosen))] == [triplets(sizes).place(n % total) for n in rows]


def test_other_rows_have_another_hash_and_what_names_no_rows_is_refused() -> None:
    data = triplets([3])
    assert data[[0, 1]].sha256 != data[[1, 0]].sha256
    assert data[np.int64(-1)]["anchor"] == "a2"
    for wrong in ([True, False, True], [0.5], [[0], [1]], None):
        with pytest.raises(InputError, match="a list of row numbers"):
            data[wrong]
    for beyond in ([3], [-4], 3):
        with pytest.raises(IndexError):
            data[beyond]


@pytest.mark.parametrize("row", [-1, 3])
def test_take_refuses_rows_out_of_range(row: int) -> None:
    with pytest.raises(IndexError):
        triplets([3]).take([row])


def test_a_table_of_a_shape_has_its_columns_and_the_origin() -> None:
    assert shape_schema(Shape.TRIPLETS).names == ["anchor", "positive", "negatives", FILE, LINE]
    assert shape_schema(Shape.TRIPLETS).field("negatives").type == pa.list_(pa.large_string())
    assert shape_schema(Shape.TEXTS).field(LINE).type == pa.int64()


def test_length_place_and_sentences() -> None:
    dataset = triplets([1, 1])
    assert len(dataset) == 2
    assert dataset.place(1) == "y.csv, line 11"
    assert list(dataset.sentences()) == [
        (0, "anchor", "a0"),
        (0, "positive", "p0"),
        (0, "negatives", "n0"),
        (1, "anchor", "a1"),
        (1, "positive", "p1"),
        (1, "negatives", "n1"),
        (1, "negatives", "n1"),
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.data())
def test_select_keeps_rows_and_their_places(sizes: list[int], data: st.DataObject) -> None:
    total = sum(sizes)
    mask = data.draw(st.lists(st.booleans(), min_size=total, max_size=total))
    dataset = triplets(sizes)
    chosen = dataset.select(np.array(mask))
    rows = [row for row in range(total) if mask[row]]
    assert chosen.take(range(len(chosen))) == dataset.take(rows)
    assert [chosen.place(row) for row in range(len(chosen))] == [dataset.place(row) for row in rows]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.data())
def test_indexing_slicing_and_iteration_agree_with_a_list(sizes: list[int], data: st.DataObject) -> None:
    dataset = triplets(sizes)
    rows = [{"anchor": f"a{n}", "positive": f"p{n}", "negatives": [f"n{n}"] * (n % 3 + 1)} for n in range(sum(sizes))]
    assert [*dataset] == rows
    at = data.draw(st.integers(-len(rows), len(rows) - 1))
    assert dataset[at] == rows[at]
    part = data.draw(st.slices(len(rows)))
    assert [*dataset[part]] == rows[part]
    assert [dataset[part].place(row) for row in range(len(rows[part]))] == [dataset.place(n) for n in range(len(rows))][
        part
    ]


def test_a_name_gives_the_column_as_a_list() -> None:
    dataset = triplets([2, 1])
    assert dataset["anchor"] == ["a0", "a1", "a2"]
    assert dataset[1:]["negatives"] == [["n1", "n1"], ["n2", "n2", "n2"]]
    for name in ("text", FILE):
        with pytest.raises(InputError, match="Expected one of anchor, positive, negatives"):
            dataset[name]


def test_slices_have_hashes_of_their_own() -> None:
    dataset = triplets([4])
    hashes = {dataset[part].sha256 for part in (slice(None), slice(1, None), slice(None, None, -1), slice(2))}
    assert len(hashes) == 4


def test_repr_shows_size_shape_origin_and_the_first_row() -> None:
    assert repr(triplets([2])).splitlines() == [
        "Dataset of 2 rows (triplets) from x.csv, y.csv",
        "  anchor: a0",
        "  positive: p0",
        "  negatives: ['n0']",
    ]
    assert repr(triplets([2])[:0]) == "Dataset of 0 rows (triplets) from x.csv, y.csv"


def test_to_pandas_and_write_give_the_rows_without_their_origin(tmp_path) -> None:
    dataset = triplets([2, 1])
    assert list(dataset.to_pandas().columns) == ["anchor", "positive", "negatives"]
    assert dataset.to_pandas()["anchor"].tolist() == ["a0", "a1", "a2"]
    dataset.write(tmp_path / "rows.jsonl")
    assert [*read(tmp_path / "rows.jsonl")] == [*dataset]
