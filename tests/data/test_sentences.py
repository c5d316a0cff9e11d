"""The distinct sentences of a data set keep the line of their first occurrence."""

import pytest

from sentloom.data import Shape, read
from sentloom.data.sentences import distinct_sentences, texts_of
from tests.data.reading import put


@pytest.mark.parametrize(
    ("name", "text", "shape", "expected"),
    [
        ("a.txt", "one\ntwo\none\n", "texts", [("one", 1), ("two", 2)]),
        ("a.tsv", "anchor\tpositive\nb\ta\nc\tb\n", "pairs", [("b", 2), ("a", 2), ("c", 3)]),
        ("a.tsv", "anchor\tpositive\tnegative\tnegative_2\na\tb\tc\td\n", "triplets", [("a", 2), ("b", 2), ("c", 2), ("d", 2)]),
        ("a.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nb\tc\t2\n", "scored-pairs", [("a", 2), ("b", 2), ("c", 3)]),
        ("a.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\na\tc\tentailment\n", "nli", [("a", 2), ("b", 2), ("c", 3)]),
        ("a.tsv", "text\tlabel\na\tx\nb\ty\n", "classification", [("a", 2), ("b", 3)]),
    ],
)  # fmt: skip
def test_distinct_sentences_of_every_shape(tmp_path, name, text, shape, expected):
    data = read(put(tmp_path / name, text))
    assert data.shape == shape
    table = distinct_sentences(data)
    assert list(zip(table.column("text").to_pylist(), table.column("_line").to_pylist(), strict=True)) == expected


def test_sentences_are_distinct_over_many_batches(tmp_path):
    data = read(put(tmp_path / "a.txt", "".join(f"word {number % 7}\n" for number in range(20))))
    table = distinct_sentences(data, batch_rows=2)
    assert table.column("text").to_pylist() == [f"word {number}" for number in range(7)]
    assert table.column("_line").to_pylist() == [1, 2, 3, 4, 5, 6, 7]


def test_texts_of_a_data_set_have_another_shape_and_hash(tmp_path):
    data = read(put(tmp_path / "a.tsv", "anchor\tpositive\nb\ta\nc\tb\n"))
    texts = texts_of(data)
    assert (texts.shape, texts.take(range(3))) == (Shape.TEXTS, {"text": ["b", "a", "c"]})
    assert texts.place(2) == data.place(1)
    assert texts.sha256 != data.sha256
