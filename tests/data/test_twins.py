"""Twin files, as used for translations: two text files whose lines correspond by number."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import read, scan
from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError


def twins(folder: Path, left: bytes, right: bytes, names=("corpus.en-de.en", "corpus.en-de.de")) -> str:
    for name, content in zip(names, (left, right), strict=True):
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return "+".join(str(folder / name) for name in names)


def rows(data) -> list[tuple[str, str]]:
    return list(zip(data.column("source").to_pylist(), data.column("target").to_pylist(), strict=True))


@pytest.mark.parametrize("names", [("c.en", "c.de"), ("c.en.gz", "c.de.gz"), ("c.en", "c.de.gz"), ("a+b.txt", "c.txt")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_paired_by_number(tmp_path, names, end) -> None:
    left, right = "\ufeffA dog.{0}One\u2028line.{0}", "Ein Hund.{0}Eine Zeile.\t,{0}"
    name = twins(tmp_path, left.format(end).encode(), right.format(end).encode(), names)
    data = read(name)
    assert data.shape is Shape.PARALLEL
    assert rows(data) == [("A dog.", "Ein Hund."), ("One\u2028line.", "Eine Zeile.\t,")]
    assert data.place(1) == f"{name}, line 2"
    assert data.skipped == {}


def test_blank_lines_are_skipped_and_counted_and_numbers_are_kept(tmp_path) -> None:
    data = read(twins(tmp_path, b"a\n\n \nd\ne", b"A\n\nC\n\t\nE\n"))
    assert rows(data) == [("a", "A"), ("e", "E")]
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


def test_missing_files_and_files_with_columns_are_refused(tmp_path) -> None:
    name = twins(tmp_path, b"a\n", b"b\n")
    with pytest.raises(InputError, match=r"no such file: .*nowhere"):
        read(name.replace(".de", ".nowhere").replace("en.nowhere", "en-de"))
    with pytest.raises(InputError, match="is a table with columns"):
        read(twins(tmp_path, b"text\na\n", b"text\nb\n", ("a.csv", "b.csv")))
    with pytest.raises(DataError, match="the file is empty"):
        read(twins(tmp_path, b"", b""))


def test_the_hash_depends_on_both_and_columns_can_be_swapped(tmp_path) -> None:
    one = read(twins(tmp_path, b"a\nb\n", b"A\nB\n"))
    swapped = read(twins(tmp_path, b"a\nb\n", b"A\nB\n"), columns={"source": "target", "target": "source"})
    assert rows(swapped) == [("A", "a"), ("B", "b")]
    assert read(twins(tmp_path, b"a\nb\n", b"A\nC\n")).sha256 != one.sha256
    assert read(twins(tmp_path, b"a\nb\n", b"A\nB\n")).sha256 == one.sha256


LINE = st.text(st.characters(exclude_characters="\n\r\0\ufeff", exclude_categories=("Cs",)), max_size=9)


@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=30), st.integers(1, 40))
def test_any_lines_in_any_blocks_equal_plain_zip(tmp_path_factory, pairs, block) -> None:
    folder = tmp_path_factory.mktemp("twins")
    name = twins(folder, *("".join(pair[side] + "\n" for pair in pairs).encode() for side in (0, 1)))
    expected = [(left, right) for left, right in pairs if left.strip() and right.strip()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BLOCK", block)
        if not expected:
            with pytest.raises(DataError):
                read(name)
            return
        data = read(name)
    assert rows(data) == expected
    assert sum(data.skipped.values()) == len(pairs) - len(expected)
