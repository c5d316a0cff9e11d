"""Separators and quotes of csv and tsv files are detected and reported in a note."""

import csv
import json

import pytest

from sentloom.data import read
from sentloom.data.limits import CLEANING
from sentloom.errors import InputError
from tests.data.reading import ROWS, pairs, put, tsv


def test_a_quoted_tsv_file_is_recognised_with_a_note(tmp_path) -> None:
    rows = [(question, f'{answer}\nand "more"\tof it') for question, answer in ROWS]
    data = read(put(tmp_path / "a.tsv", tsv(rows)))
    assert pairs(data) == rows
    assert "quoted" in data.notes[0]
    assert pairs(read(put(tmp_path / "b.tsv", tsv(ROWS, quoting=csv.QUOTE_ALL)))) == ROWS


def test_stray_quotes_stay(tmp_path) -> None:
    rows = [('"yes" he said', '5" wide'), ('"quoted"', "plain"), *ROWS]
    plain = "".join("\t".join(row) + "\n" for row in [("question", "answer"), *rows])
    data = read(put(tmp_path / "a.tsv", plain))
    assert pairs(data) == rows
    assert data.notes == ()


def test_quotes_that_are_only_likely_stay_unless_cleaned(tmp_path) -> None:
    rows = [('say "a"', "b"), *ROWS]
    path = put(tmp_path / "a.tsv", tsv(rows))
    data = read(path)
    assert pairs(data)[0] == ('"say ""a"""', "b")
    assert "sentloom check --quoted" in data.notes[0]
    assert pairs(read(path, allow=CLEANING)) == rows


def test_the_caller_says_whether_a_tsv_file_is_quoted(tmp_path) -> None:
    """Read three files: one is recognised as quoted, one is only likely to be, and one is not."""
    sure, likely = (put(tmp_path / f"{n}.tsv", tsv([('say "a"', "b")], quoting=n)) for n in (csv.QUOTE_ALL, 0))
    stray = put(tmp_path / "stray.tsv", 'question\tanswer\n"a"\tb c\n')
    assert pairs(read(sure)) == pairs(read(sure, quoted=True)) == pairs(read(likely, quoted=True)) == [('say "a"', "b")]
    assert pairs(read(likely, quoted=False)) == [('"say ""a"""', "b")]
    raw = read(sure, columns={"anchor": 1, "positive": 2}, quoted=False)
    assert pairs(raw) == [('"question"', '"answer"'), ('"say ""a"""', '"b"')]
    assert "sentloom check --unquoted" in read(sure).notes[0]
    assert (pairs(read(stray)), pairs(read(stray, quoted=True))) == ([('"a"', "b c")], [("a", "b c")])
    with pytest.raises(InputError, match="only for tsv files"):
        read(put(tmp_path / "a.csv", "text\none\n"), quoted=False)


def test_clean_follows_the_quoting_options(tmp_path, sentloom) -> None:
    path, output = put(tmp_path / "a.tsv", 'question\tanswer\n"a"\tb c\n'), tmp_path / "fixed.jsonl"
    for option, text in (("--quoted", "a"), ("--unquoted", '"a"')):
        assert sentloom("check", path, option, "-o", output).returncode == 0
        assert json.loads(output.read_text()) == {"question": text, "answer": "b c"}
    assert sentloom("check", output, "--quoted", "-o", tmp_path / "no.csv").returncode == 2
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_decimal_commas(tmp_path, separator) -> None:
    lines = [("sentence1", "sentence2", "score"), ("a, b", "c", "4,5" if separator == ";" else "4.5")]
    data = read(put(tmp_path / "a.csv", "".join(separator.join(line) + "\n" for line in lines)))
    assert data.take([0]) == {"sentence1": ["a, b"], "sentence2": ["c"], "score": [4.5]}
    assert "separated by" in data.notes[0]


@pytest.mark.parametrize(
    ("mark", "name", "first"),
    [(";", "a.csv", "sep=;\n"), (",", "a.tsv", '\n"SEP=,"\r\n'), ("\t", "a.csv", "\ufeffsep=\t\n"), ("|", "a.csv", "")],
)
def test_separators_that_the_first_line_states_and_bars(mark, name, first, tmp_path) -> None:
    path = put(tmp_path / name, first + f'question{mark}answer\n"a{mark} b"{mark}c\n')
    data = read(path)
    assert pairs(data) == [(f"a{mark} b", "c")]
    assert data.place(0) == f"{path}, line {first.count(chr(10)) + 2}"
    assert "separate" in data.notes[0]
