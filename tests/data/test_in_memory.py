"""Rows in memory are read like files: the same shapes, the same checks, and a hash of their content."""

import subprocess
import sys
from collections import UserDict

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import Shape, read
from sentloom.data.limits import FITTING
from sentloom.errors import DataError, InputError

FAQ = [{"question": "Where?", "answer": "Here.", "team": 1}, {"question": "When?", "answer": "Now.", "team": 2}]
HOLDERS = {
    "the list": lambda rows: rows,
    "the DataFrame": pd.DataFrame,
    "the DataFrame ": pl.DataFrame,
    "the Arrow table": pa.Table.from_pylist,
    "the datasets.Dataset": datasets.Dataset.from_list,
}


def test_a_lazy_frame_must_be_collected():
    with pytest.raises(InputError, match=r"type LazyFrame(.|\n)*\.collect\(\)"):
        read(pl.DataFrame(FAQ).lazy())


@pytest.mark.parametrize("name", HOLDERS)
def test_every_container_gives_the_same_rows_and_the_same_hash(name):
    data = read(HOLDERS[name](FAQ))
    assert [*data] == [{"anchor": "Where?", "positive": "Here."}, {"anchor": "When?", "positive": "Now."}]
    assert data.place(1) == f"{name.strip()}, row 2"
    assert data.ignored == ("team",)
    assert data.sha256 == read(FAQ).sha256


@pytest.mark.parametrize("series", [pd.Series, pl.Series, np.array, pa.array, tuple, iter])
def test_a_series_of_strings_is_texts(series):
    assert [row["text"] for row in read(series(["a", "b"]))] == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "shape", "expected"),
    [
        (("a",), Shape.TEXTS, {"text": "a"}),
        (("a", "b"), Shape.PAIRS, {"anchor": "a", "positive": "b"}),
        (("a", 3), Shape.CLASSIFICATION, {"text": "a", "label": "3"}),
        (("a", "b", 0.5), Shape.SCORED_PAIRS, {"sentence1": "a", "sentence2": "b", "score": 0.5}),
        (("a", "b", "neutral"), Shape.NLI, {"premise": "a", "hypothesis": "b", "label": "neutral"}),
        (("a", "b", "c"), Shape.TRIPLETS, {"anchor": "a", "positive": "b", "negatives": ["c"]}),
        (["a", "b", "c", "d"], Shape.TRIPLETS, {"anchor": "a", "positive": "b", "negatives": ["c", "d"]}),
    ],
)
def test_tuples_are_recognised_by_their_length_and_values(row, shape, expected):
    data = read([row])
    assert data.shape is shape
    assert data[0] == expected


def test_tuples_of_texts_and_what_looks_like_labels_need_a_shape():
    """Twenty texts with four labels; with five different second texts in twenty rows they may be answers."""
    rows = [(f"text {n}", f"label {n % 4}") for n in range(20)]
    with pytest.raises(InputError, match="4 different texts in 20 rows, which looks like labels") as error:
        read(rows)
    assert "sentloom.read(rows, shape='classification')" in str(error.value)
    assert read(rows, shape="classification").shape is Shape.CLASSIFICATION
    assert read(rows, shape="pairs").shape is Shape.PAIRS
    assert read(rows[:19]).shape is Shape.PAIRS
    assert (
        read([(text, f"{text} {n % 5}" if n < 5 else "answer 1") for n, (text, _) in enumerate(rows)]).shape
        is Shape.PAIRS
    )


def test_a_shape_or_column_numbers_name_the_columns_of_tuples():
    assert read([("a", "b")], shape="classification")[0] == {"text": "a", "label": "b"}
    assert read([("a", "x", "b")], columns={"anchor": 1, "positive": 3})[0] == {"anchor": "a", "positive": "b"}
    with pytest.raises(InputError, match=r"the tuples have 2 values\. Expected 3 for scored-pairs"):
        read([("a", "b")], shape="scored-pairs")


def test_columns_may_be_written_as_for_the_command():
    assert [*read([("b", "x", "a")], columns="anchor=3,positive=1")] == [{"anchor": "a", "positive": "b"}]
    with pytest.raises(InputError, match=r"columns: found a list. Expected a dict"):
        read([("a", "b")], columns=["anchor", "positive"])


def test_an_unknown_shape_is_refused_with_the_shapes_there_are():
    with pytest.raises(InputError, match=r"'pair' is unknown. Expected one of texts, pairs, triplets, scored-pairs"):
        read([("a", "b")], shape="pair")


def test_columns_name_the_columns_of_a_table():
    frame = pd.DataFrame({"title": ["a"], "body": ["b"], "n": [1]})
    assert read(frame, columns={"anchor": "title", "positive": "body"})[0] == {"anchor": "a", "positive": "b"}


def test_lists_of_negatives_may_be_lists_tuples_or_arrays():
    frame = pd.DataFrame({"anchor": ["a"], "positive": ["b"]})
    for cell in (["c", "d"], ("c", "d"), np.array(["c", "d"])):
        assert read(frame.assign(negatives=pd.Series([cell])))[0]["negatives"] == ["c", "d"]


def test_class_labels_of_datasets_are_read_by_name_also_after_select():
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    data = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, 0]}, features=features)
    assert [*read(data.select([2, 1]))] == [{"text": "c", "label": "no"}, {"text": "b", "label": "yes"}]


MISSING = (None, float("nan"), np.nan, pd.NA, pd.NaT)


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_missing_values_of_every_kind_are_empty_cells(missing):
    with pytest.raises(DataError, match=r"the DataFrame, row 2: empty cell in column 'text'\. Expected text"):
        read(pd.DataFrame({"text": pd.Series(["a", missing], dtype=object)}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a", 2], "the list, row 2: found 2 in column 'text'. Expected text."),
        ([("a", "b"), ("c",)], "the list, row 2: found 1 value. Expected 2, as in the first row."),
        ([{"text": "a"}, "b"], "the list, row 2: found 'b'. Expected a dict, as in the first row."),
        ([{"text": "a"}, {}], "the list, row 2: empty cell in column 'text'. Expected text."),
        ([], "the list: there are no rows. Expected at least one row."),
    ],
)
def test_a_bad_row_is_named_by_its_number_and_no_command_is_suggested(rows, message):
    with pytest.raises(DataError) as caught:
        read(rows)
    assert str(caught.value).splitlines()[0] == message
    assert "sentloom check" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [{"text": ["a"]}, datasets.DatasetDict(), {"a", "b"}, 7, UserDict(a=1), [1, 2], [b"a"]]
)
def test_data_without_ordered_rows_is_refused(data):
    with pytest.raises(InputError, match="Expected"):
        read(data)


def test_some_unusable_rows_are_left_out_if_allowed():
    data = read([*(f"text {n}" for n in range(20)), None], allow=FITTING)
    assert (len(data), data.left_out) == (20, 1)


def test_a_dataset_is_returned_unchanged():
    data = read(["a"])
    assert read(data) is data
    with pytest.raises(InputError, match="a Dataset of texts cannot be given the shape pairs"):
        read(data, shape="pairs")


@given(st.lists(st.tuples(st.text("ab", min_size=1), st.text("ab", min_size=1)), min_size=1, max_size=5), st.data())
def test_the_hash_is_equal_exactly_for_equal_rows(rows, data):
    other = data.draw(st.sampled_from([rows, rows[::-1], [(a, b + "a") for a, b in rows], [*rows, rows[0]]]))
    assert (read(rows).sha256 == read([list(row) for row in other]).sha256) == (rows == other)


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, *rest):
        if name in ("pandas", "polars", "datasets"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Absent())
import sentloom
data = sentloom.read([("a", "b")])
print(data[0])
data.to_pandas()
"""


def test_rows_are_read_without_the_optional_packages():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.stdout.strip() == "{'anchor': 'a', 'positive': 'b'}"
    assert "to_pandas: pandas is not installed." in done.stderr
