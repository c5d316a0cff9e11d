"""Every kind of file opens as columns with places, or is refused with a reason; twin files are paired by line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import Shape, read
from sentloom.data.limits import FITTING, Allowance
from sentloom.errors import DataError, InputError
from tests.data.reading import lines, pairs, put, refused, rows, twin_rows, twins


def test_txt_is_always_texts(tmp_path: Path) -> None:
    dataset = read(put(tmp_path / "a.txt", "\ufeffquestion,answer\n\n  two\twords \n"))
    assert dataset.shape is Shape.TEXTS
    assert rows(dataset) == {"text": ["question,answer", "  two\twords "]}
    assert lines(dataset) == [1, 3]
    assert dataset.skipped == {"blank lines": 1}
    with pytest.raises(InputError):
        read(tmp_path / "a.txt", shape=Shape.PAIRS)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("content", ["", "\n\n \n", "\ufeff"])
def test_empty_files(name: str, content: str, tmp_path: Path) -> None:
    assert refused(put(tmp_path / name, content)) == [": the file is empty. Expected at least one row."]


def test_damage_in_the_header_is_reported_before_its_names(tmp_path: Path) -> None:
    (message,) = refused(put(tmp_path / "a.csv", b"te\xffxt\na\n"))
    assert message == "line 1: invalid byte 0xFF at byte 3 of the line. Expected UTF-8."


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_files_without_read_permission(name: str, tmp_path: Path) -> None:
    put(tmp_path / name, "x").chmod(0)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / name)


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_the_null_of_databases_is_an_empty_cell(name, mark, tmp_path) -> None:
    path = put(tmp_path / name, f"question{mark}answer\na{mark}b\nc{mark}\\N\nd{mark}\\N e\n")
    with pytest.raises(DataError, match="line 3: empty cell in column 'answer'"):
        read(path)
    assert pairs(read(path, allow=FITTING)) == [("a", "b"), ("d", "\\N e")]


@pytest.mark.parametrize("names", [("c.en", "c.de"), ("c.en.gz", "c.de.gz"), ("c.en", "c.de.gz"), ("a+b.txt", "c.txt")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_paired_by_number(tmp_path, names, end) -> None:
    left, right = "\ufeffA dog.{0}One\u2028line.{0}", "Ein Hund.{0}Eine Zeile.\t,{0}"
    name = twins(tmp_path, left.format(end).encode(), right.format(end).encode(), names)
    data = read(name)
    assert data.shape is Shape.PARALLEL
    assert twin_rows(data) == [("A dog.", "Ein Hund."), ("One\u2028line.", "Eine Zeile.\t,")]
    assert data.place(1) == f"{name}, line 2"
    assert data.skipped == {}


def test_blank_lines_are_skipped_and_counted_and_numbers_are_kept(tmp_path) -> None:
    data = read(twins(tmp_path, b"a\n\n \nd\ne", b"A\n\nC\n\t\nE\n"))
    assert twin_rows(data) == [("a", "A"), ("e", "E")]
    assert data.column("_line").to_pylist() == [1, 5]
    assert data.skipped == {"blank lines": 1, "lines that are blank on one side": 2}


def test_unequal_line_counts_are_refused_with_both_counts(tmp_path) -> None:
    for left, right, counts in ((b"a\n" * 3, b"b\n" * 5, "3 lines in .*en but 5 lines in"), (b"a", b"", "1 .* 0 ")):
        with pytest.raises(DataError, match=counts):
            read(twins(tmp_path, left, right))


def test_problems_name_their_file(tmp_path) -> None:
    with pytest.raises(DataError) as fault:
        read(twins(tmp_path, b"a\nb\xff\nc\n", b"A\nB\n\0C\n"))
    assert fault.value.total == 2
    first, second = map(str, fault.value.problems)
    assert "corpus.en-de.en, line 2: invalid byte 0xFF" in first
    assert "corpus.en-de.de, line 3: NUL" in second
    assert "+" not in first


def test_the_hash_depends_on_both_and_columns_can_be_swapped(tmp_path) -> None:
    data = read(twins(tmp_path, b"a\nb\n", b"A\nB\n"))
    swapped = read(twins(tmp_path, b"a\nb\n", b"A\nB\n"), columns={"source": "target", "target": "source"})
    assert twin_rows(swapped) == [("A", "a"), ("B", "b")]
    assert read(twins(tmp_path, b"a\nb\n", b"A\nC\n")).sha256 != data.sha256
    assert read(twins(tmp_path, b"a\nb\n", b"A\nB\n")).sha256 == data.sha256


LINE = st.text(st.characters(exclude_characters="\n\r\0\ufeff", exclude_categories=("Cs",)), max_size=9)


@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=30), st.integers(1, 40))
def test_any_lines_in_any_blocks_equal_plain_zip(tmp_path_factory, pairs, block) -> None:
    folder = tmp_path_factory.mktemp("twins")
    name = twins(folder, *("".join(pair[side] + "\n" for pair in pairs).encode() for side in (0, 1)))
    expected = [(left, right) for left, right in pairs if left.strip() and right.strip()]
    if not expected:
        with pytest.raises(DataError):
            read(name, allow=Allowance(block=block))
        return
    data = read(name, allow=Allowance(block=block))
    assert twin_rows(data) == expected
    assert sum(data.skipped.values()) == len(pairs) - len(expected)
