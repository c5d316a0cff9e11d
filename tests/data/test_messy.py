"""Messy files from practice are read, repaired or left out with a report; strict reading refuses them."""

import csv
import io
import json
from pathlib import Path

import pytest

from sentloom.data import read, scan
from sentloom.data.limits import CLEANING, FITTING, STRICT, Allowance
from sentloom.data.writers import write
from sentloom.errors import DataError, InputError

ROWS = [(f"question {n}", f"answer {n}") for n in range(100)]


def tsv(rows: list[tuple[str, str]], **options: object) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter="\t", lineterminator="\n", **options).writerows([("question", "answer"), *rows])
    return file.getvalue()


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(data) -> list[tuple[str, str]]:
    return list(zip(data.column("anchor").to_pylist(), data.column("positive").to_pylist(), strict=True))


def test_a_quoted_tsv_file_is_recognised_with_a_note(tmp_path) -> None:
    rows = [(one, f'{other}\nand "more"\tof it') for one, other in ROWS]
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
    assert "sentloom clean --quoted" in data.notes[0]
    assert pairs(read(path, allow=CLEANING)) == rows


def test_the_caller_says_whether_a_tsv_file_is_quoted(tmp_path) -> None:
    """Read three files: one is recognised as quoted, one is only likely to be, and one is not."""
    sure, likely = (put(tmp_path / f"{n}.tsv", tsv([('say "a"', "b")], quoting=n)) for n in (csv.QUOTE_ALL, 0))
    stray = put(tmp_path / "stray.tsv", 'question\tanswer\n"a"\tb c\n')
    assert pairs(read(sure)) == pairs(read(sure, quoted=True)) == pairs(read(likely, quoted=True)) == [('say "a"', "b")]
    assert pairs(read(likely, quoted=False)) == [('"say ""a"""', "b")]
    raw = read(sure, columns={"anchor": 1, "positive": 2}, quoted=False)
    assert pairs(raw) == [('"question"', '"answer"'), ('"say ""a"""', '"b"')]
    assert "sentloom clean --unquoted" in read(sure).notes[0]
    assert (pairs(read(stray)), pairs(read(stray, quoted=True))) == ([('"a"', "b c")], [("a", "b c")])
    with pytest.raises(InputError, match="only for tsv files"):
        read(put(tmp_path / "a.csv", "text\none\n"), quoted=False)


def test_clean_follows_the_quoting_options(tmp_path, sentloom) -> None:
    path, output = put(tmp_path / "a.tsv", 'question\tanswer\n"a"\tb c\n'), tmp_path / "fixed.jsonl"
    for option, text in (("--quoted", "a"), ("--unquoted", '"a"')):
        assert sentloom("clean", path, option, "-o", output).returncode == 0
        assert json.loads(output.read_text()) == {"anchor": text, "positive": "b c"}
    assert sentloom("clean", output, "--quoted", "-o", tmp_path / "no.csv").returncode == 2
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_decimal_commas(tmp_path, separator) -> None:
    lines = [("sentence1", "sentence2", "score"), ("a, b", "c", "4,5" if separator == ";" else "4.5")]
    data = read(put(tmp_path / "a.csv", "".join(separator.join(line) + "\n" for line in lines)))
    assert data.take([0]) == {"sentence1": ["a, b"], "sentence2": ["c"], "score": [4.5]}
    assert "separated by" in data.notes[0]


def test_unusable_rows_are_left_out_up_to_the_allowance(tmp_path) -> None:
    rows = [(one, "" if number in (3, 50) else other) for number, (one, other) in enumerate(ROWS)]
    path = put(tmp_path / "a.tsv", tsv(rows) + "alone\n")
    data = read(path, allow=FITTING)
    assert pairs(data) == [row for row in rows if row[1]]
    assert data.left_out == 3
    assert {str(one) for one in data.irregular} == {
        f"1 rows with 1 cell where 2 were expected ({path}, line 102)",
        f"2 empty cells in column 'answer' ({path}, line 5, 52)",
    }
    assert data.sha256 != read(put(tmp_path / "b.tsv", tsv([row for row in rows if row[1]]))).sha256
    with pytest.raises(DataError, match=r"3 of 101 rows are unusable, more than 2%(.|\n)*sentloom clean"):
        read(path, allow=Allowance(0.02))
    with pytest.raises(DataError, match="sentloom clean"):
        read(path)


def test_a_row_with_two_bad_cells_counts_once(tmp_path) -> None:
    data = read(put(tmp_path / "a.tsv", tsv([("", ""), *ROWS])), allow=FITTING)
    assert (data.left_out, len(data)) == (1, 100)


def test_many_problems_are_summarised_with_their_cause(tmp_path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path / "a.tsv", tsv(ROWS) + "alone\n" * 30 + "one\t\n"))
    assert "  30 rows with 1 cell where 2 were expected\n  1 empty cells in column 'answer'" in str(caught.value)
    assert "Likely cause: line breaks in cells" in str(caught.value)


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


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_the_null_of_databases_is_an_empty_cell(name, mark, tmp_path) -> None:
    path = put(tmp_path / name, f"question{mark}answer\na{mark}b\nc{mark}\\N\nd{mark}\\N e\n")
    with pytest.raises(DataError, match="line 3: empty cell in column 'answer'"):
        read(path)
    assert pairs(read(path, allow=FITTING)) == [("a", "b"), ("d", "\\N e")]


@pytest.mark.parametrize("block", [1, 5, 1 << 18])
def test_lines_may_end_in_carriage_returns(block, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(scan, "BLOCK", block)
    data = read(put(tmp_path / "a.csv", "question,answer\ra b,c d\re,f\r"))
    assert pairs(data) == [("a b", "c d"), ("e", "f")]
    assert data.place(1).endswith("line 3")
    assert data.notes == (f"{tmp_path / 'a.csv'}: lines end in carriage returns without line feeds",)
    kept = read(put(tmp_path / "b.csv", 'question,answer\r\n"a\rb",c\r\n'))
    assert pairs(kept) == [("a\rb", "c")]
    assert kept.notes == ()


@pytest.mark.parametrize(
    ("start", "message", "advice"),
    [
        (b"PK\x03\x04\x14\x00", "a spreadsheet", "save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old spreadsheet", "save it as CSV"),
        (b"\x1f\x8b\x08", "gzip data", "Rename the file to end in .gz"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl"])
def test_other_formats_with_a_text_extension_are_recognised(start, message, advice, name, tmp_path) -> None:
    path = put(tmp_path / name, start + bytes(range(256)))
    for allow in (STRICT, CLEANING):
        with pytest.raises(DataError) as caught:
            read(path, allow=allow)
        assert message in str(caught.value)
        assert advice in str(caught.value)


def test_cleaning_repairs_encodings_nul_and_commas(tmp_path) -> None:
    path = put(tmp_path / "a.txt", "Schön\n".encode() + b"Sch\xf6n \x96 gut\na\0b\n")
    assert read(path, allow=CLEANING).column("text").to_pylist() == ["Schön", "Schön – gut", "ab"]
    polish = put(tmp_path / "b.txt", b"one\ntwo\n" + "żółta łódź płynie\n".encode("cp1250"))
    assert read(polish, allow=CLEANING).column("text").to_pylist() == ["one", "two"]
    wide = put(tmp_path / "c.txt", "größer\nkleiner\n".encode("utf-16"))
    assert read(wide, allow=CLEANING).column("text").to_pylist() == ["größer", "kleiner"]
    commas = put(tmp_path / "d.jsonl", "".join(json.dumps({"text": word}) + ",\n" for word in "ab"))
    assert read(commas, allow=CLEANING).column("text").to_pylist() == ["a", "b"]


def test_formulas_are_escaped_on_request(tmp_path) -> None:
    data = read(put(tmp_path / "a.jsonl", json.dumps({"sentence1": "=1+1", "sentence2": "-x", "score": -2}) + "\n"))
    write(data, tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().splitlines()[1] == "=1+1,-x,-2.0"
    for ending, mark in (("csv", ","), ("tsv", "\t")):
        write(data, tmp_path / f"safe.{ending}", spreadsheet_safe=True)
        assert (tmp_path / f"safe.{ending}").read_text().splitlines()[1] == mark.join(["'=1+1", "'-x", "-2.0"])
