"""Hostile and messy data files: what each is, and what reading it must give."""

import csv
import gzip
import io
import json
import os
import socket
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Outcome = int | str  # rows that are read, or what the error says
Maker = Callable[[Path], Path]  # writes into a folder and gives what to read

QUESTIONS = [f"How do I pay invoice number {n}?" for n in range(200)]
ANSWERS = [f"Open the page of invoice {n} and choose a card." for n in range(200)]
HEAD = ("question", "answer")
ROWS = list(zip(QUESTIONS, ANSWERS, strict=True))
BOMB = b"the same line again and again\n" * 4_000_000  # 120 MB


class Case(NamedTuple):
    """A file, and what the commands make of it; `fit` as `check` unless it differs."""

    name: str
    make: Maker
    check: Outcome
    clean: Outcome
    fit: Outcome


def case(name: str, make: Maker, check: Outcome, clean: Outcome | None = None, fit: Outcome | None = None) -> Case:
    return Case(name, make, check, check if clean is None else clean, check if fit is None else fit)


def raw(name: str, content: bytes | str | Callable[[], bytes]) -> Maker:
    def make(folder: Path) -> Path:
        data = content() if callable(content) else content
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return folder / name

    return make


def lines(*changed: tuple[int, bytes]) -> bytes:
    """The questions as a txt file, some lines replaced."""
    found = [question.encode() for question in QUESTIONS]
    for number, line in changed:
        found[number] = line
    return b"".join(line + b"\n" for line in found)


def table(rows: Sequence[Sequence[str]], separator: str = "\t", end: str = "\n", head: Sequence[str] = HEAD) -> str:
    """Cells as they are, without quoting."""
    return "".join(separator.join(row) + end for row in (head, *rows))


def quoted(rows: Sequence[Sequence[str]], separator: str = "\t", **options: object) -> str:
    """As pandas and Excel write it."""
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n", **options).writerows([HEAD, *rows])
    return file.getvalue()


def emptied(rows: Sequence[Sequence[str]], count: int) -> list[tuple[str, str]]:
    return [(one, "" if number < count else other) for number, (one, other) in enumerate(rows)]


def json_lines(rows: Sequence[object], behind: str = "") -> str:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}{behind}\n" for row in rows)


def objects(*changed: tuple[int, object]) -> list[object]:
    found: list[object] = [dict(zip(HEAD, row, strict=True)) for row in ROWS]
    for number, value in changed:
        found[number] = value
    return found


def fifo(name: str) -> Maker:
    def make(folder: Path) -> Path:
        os.mkfifo(folder / name)
        return folder / name

    return make


def link(name: str, target: str) -> Maker:
    def make(folder: Path) -> Path:
        (folder / name).symlink_to(target)
        return folder / name

    return make


def bound_socket(folder: Path) -> Path:
    path = folder / "a.tsv"
    here = Path.cwd()
    os.chdir(folder)  # a socket's path has room for a hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)
    return path


def sparse(folder: Path) -> Path:
    with (folder / "a.txt").open("wb") as file:
        file.truncate(5_000_000_000)
    return folder / "a.txt"


def many_files(folder: Path) -> Path:
    for number in range(10_001):
        (folder / f"{number}.txt").touch()
    return folder


def looped_folder(folder: Path) -> Path:
    (folder / "inner").symlink_to(folder)
    (folder / "a.csv").symlink_to("a.csv")
    (folder / "b.csv").write_text(quoted(ROWS, ","))
    return folder


def zipped(files: dict[str, bytes]) -> Maker:
    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "c.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return folder / "c.zip"

    return make


def encrypted(folder: Path) -> Path:
    path = zipped({"c.en": lines(), "c.de": lines()})(folder)
    content = bytearray(path.read_bytes())
    for at in range(len(content) - 3):
        if content[at : at + 4] == b"PK\x01\x02":
            content[at + 8] |= 1
    path.write_bytes(content)
    return path


def twins(left: bytes, right: bytes) -> Maker:
    def make(folder: Path) -> Path:
        (folder / "c.en").write_bytes(left)
        (folder / "c.de").write_bytes(right)
        return Path(f"{folder / 'c.en'}+{folder / 'c.de'}")

    return make


def parquet(columns: Callable[[], pa.Table], groups: int = 1) -> Maker:
    def make(folder: Path) -> Path:
        written = columns()
        with pq.ParquetWriter(folder / "a.parquet", written.schema, compression="zstd") as writer:
            for _ in range(groups):
                writer.write_table(written)
        return folder / "a.parquet"

    return make


def texts(*changed: tuple[int, object], kind: pa.DataType | None = None) -> pa.Table:
    found: list[object] = list(QUESTIONS)
    for number, value in changed:
        found[number] = value
    return pa.table({"text": pa.array(found, kind)})


def repeated(text: str, rows: int) -> pa.Table:
    return pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [text])})


def not_utf8() -> pa.Table:
    cells = [question.encode() for question in QUESTIONS]
    cells[7] = b"caf\xe9"
    column = pa.array(cells, pa.binary())
    return pa.table({"text": pa.Array.from_buffers(pa.string(), len(column), column.buffers())})


def saved(columns: Callable[[], pa.Table], **options: str) -> Maker:
    def make(folder: Path) -> Path:
        written = columns()
        with pa.ipc.new_stream(folder / "a.arrow", written.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
            stream.write_table(written)
        return state(folder, json.dumps({"_data_files": [{"filename": "a.arrow"}]}))

    return make


def state(folder: Path, content: str) -> Path:
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(content)
    return folder


def saved_fifo(folder: Path) -> Path:
    os.mkfifo(folder / "a.arrow")
    return state(folder, json.dumps({"_data_files": [{"filename": "a.arrow"}]}))


def wide(separator: str, columns: int) -> str:
    names, cells = (separator.join(f"{word}{n}" for n in range(columns)) for word in ("column", "cell"))
    return f"{names}\n{cells}\n"


NEWLINES = [(question, f'{answer}\nThen press "Pay".') for question, answer in ROWS]
STRAY = [(f'"{question}" he said', f'{answer} 5" wide') for question, answer in ROWS]
SCORED = [(one, other, f"{n % 50 / 10}".replace(".", ",")) for n, (one, other) in enumerate(ROWS)]
UNPACK, SHARE = "unpacks? to", "unusable, more than 5%"
DEEP = "[" * 100_000 + "]" * 100_000

CASES = [
    # text files
    case("a NUL character", raw("a.txt", lines((3, b"How\0 now?"))), "NUL", 200, 199),
    case("lines in Windows-1252", raw("a.txt", lines((3, b"Sch\xf6n und gut"), (9, b"\x93quoted\x94"))), "UTF-8", 200, 198),
    case("two encodings", raw("a.txt", lines((3, "Schön und gut".encode()), (9, b"Sch\xf6n und alt"))), "UTF-8", 200, 199),
    case("lines in Windows-1251", raw("a.txt", lines((3, "Привет мир".encode("cp1251")))), "UTF-8", 199, 199),
    case("lines in Windows-1250", raw("a.txt", lines((3, "żółta łódź płynie".encode("cp1250")))), "UTF-8", 199, 199),
    case("UTF-16 with its mark", raw("a.txt", lines().decode().encode("utf-16")), "UTF-16", 200),
    case("UTF-16 without a mark", raw("a.txt", lines().decode().encode("utf-16-le")), "NUL", 200, SHARE),
    case("a line of 11 MB", raw("a.txt", lambda: lines((3, b"x" * 11_000_000))), "more than 10,000,000 bytes", 199, 199),
    case("five gigabytes without a line end", sparse, "1,000,000,000 bytes without a line break"),
    case("nothing but blank lines", raw("a.txt", "\n" * 1_000), "no rows|empty"),
    case("an empty file", raw("a.txt", b""), "the file is empty"),
    # what is no file
    case("a pipe", fifo("a.txt"), "a pipe"),
    case("a pipe named as compressed csv", fifo("a.csv.gz"), "a pipe"),
    case("a pipe named as parquet", fifo("a.parquet"), "a pipe"),
    case("a pipe named as zip", fifo("a.zip"), "a pipe"),
    case("a device", link("a.jsonl", "/dev/zero"), "a device"),
    case("a socket", bound_socket, "a socket"),
    case("a link to itself", link("a.csv", "a.csv"), "no such file"),
    case("a folder that links to itself", looped_folder, 200),
    case("a folder of 10,001 empty files", many_files, "the file is empty"),
    # compressed data
    case("a gzip bomb", raw("a.txt.gz", lambda: gzip.compress(BOMB)), UNPACK),
    case("a gzip bomb of one line", raw("a.csv.gz", lambda: gzip.compress(bytes(120_000_000), 1)), UNPACK),
    case("a gzip bomb of many members", raw("a.txt.gz", lambda: gzip.compress(BOMB[:3_000_000]) * 40), UNPACK),
    case("gzip cut short", raw("a.txt.gz", lambda: gzip.compress(lines())[:-9]), "truncated or damaged"),
    case("gzip in name alone", raw("a.txt.gz", lines()), "truncated or damaged"),
    case("a zip bomb", zipped({"c.en": BOMB, "c.de": BOMB}), UNPACK),
    case("a zip file of 10,001 files", zipped({f"{n}.md": b"" for n in range(10_001)}), "10,001 files"),
    case("a zip file in a zip file", zipped({"inner.zip": b"PK"}), "inner.zip"),
    case("an encrypted zip file", encrypted, "encrypted"),
    case("a zip file that climbs out", zipped({"../../c.en": lines(), "../../c.de": lines().replace(b"How", b"Wie")}), 200),
    case("twins of different lengths", twins(lines(), b"one line\n"), "200 lines"),
    # tables
    case("80,000 columns in csv", raw("a.csv", wide(",", 80_000)), "80,000 columns"),
    case("80,000 columns in tsv", raw("a.tsv", wide("\t", 80_000)), "80,000 columns"),
    case("80,000 keys in jsonl", raw("a.jsonl", lambda: json_lines([{f"k{n}": "x" for n in range(80_000)}]).encode()), "80,000 columns"),
    case("10,001 columns in parquet", parquet(lambda: pa.table({f"c{n}": ["x"] for n in range(10_001)})), "10,001 columns"),
    case("9,000 unknown columns", raw("a.csv", wide(",", 9_000)), "and 8,980 more"),
    case("a column name of five million characters", raw("a.tsv", "x" * 5_000_000 + "\ty\na\tb\n"), "has 5,000,000 characters"),
    case("two columns of one name", raw("a.tsv", table([(*row, "x") for row in ROWS], head=(*HEAD, "answer"))), "more than one"),
    case("5,000 questions and answers", raw("a.csv", ",".join(HEAD * 4_000) + "\n" + ",".join("ab" * 4_000) + "\n"), "more than one"),
    case("an unclosed quote", raw("a.csv", quoted(ROWS, ",") + 'one,"two\n' + "more\n" * 100), "quote that is not closed"),
    case("misplaced quotes", raw("a.csv", quoted(ROWS, ",").replace("invoice number 7?", 'invoice "7"?')), "quote inside an unquoted cell", 199, 199),
    case("semicolons and decimal commas", raw("a.csv", table(SCORED, ";", head=("sentence1", "sentence2", "score"))), 200),
    case("Excel: semicolons, mark, CRLF", raw("a.csv", b"\xef\xbb\xbf" + table(ROWS, ";", "\r\n").encode()), 200),
    case("tabs in a csv file", raw("a.csv", table(ROWS)), 200),
    case("commas in a tsv file", raw("a.tsv", table(ROWS, ",")), 200),
    case("a quoted tsv file with line breaks", raw("a.tsv", quoted(NEWLINES)), 200),
    case("the same with all cells in quotes", raw("a.tsv", quoted(ROWS, quoting=csv.QUOTE_ALL)), 200),
    case("the same with seven empty answers", raw("a.tsv", quoted(emptied(NEWLINES, 7))), "empty cell", 193, 193),
    case("Excel's Unicode text", raw("a.tsv", quoted(NEWLINES).encode("utf-16")), "UTF-16", 200),
    case("stray quotes in a tsv file", raw("a.tsv", table(STRAY)), 200),
    case("seven empty answers", raw("a.tsv", table(emptied(ROWS, 7))), "empty cell", 193, 193),
    case("eighty empty answers", raw("a.tsv", table(emptied(ROWS, 80))), "80 empty cells in column 'answer'", 120, SHARE),
    case("almost only empty answers", raw("a.tsv", table(emptied(ROWS, 190))), "190 empty cells", "more than 50%", SHARE),
    case("rows with a tab too many", raw("a.tsv", table(ROWS) + "one\ttwo\tthree\n" * 4), "3 cells", 200, 200),
    case("formulas", raw("a.csv", quoted([(f"={q}", f"@{a}") for q, a in ROWS], ",")), 200),
    case("HTML", raw("a.tsv", table([(f"<script>{q}</script>", a) for q, a in ROWS])), 200),
    # JSON
    case("a JSON array", raw("a.jsonl", "[\n" + json_lines(objects(), ",") + "]\n"), 200),
    case("commas behind objects", raw("a.jsonl", json_lines(objects(), ",")), "end in commas", 200, "sentloom check"),
    case("one indented document", raw("a.jsonl", json.dumps(objects(), indent=1)), 200),
    case("one indented object", raw("a.json", json.dumps({"question": "a", "answer": "b"}, indent=1)), "Likely cause"),
    case("brackets 100,000 deep", raw("a.jsonl", json_lines(objects((3, DEEP)))), "cannot be read", 199, 199),
    case("a cell of brackets", raw("a.jsonl", json_lines(objects((3, f'{{"question": {DEEP[99_500:-99_500]}, "answer": "x"}}')))), "Expected text", 199, 199),
    case("a number of 5,000 digits", raw("a.jsonl", json_lines(objects((3, "9" * 5_000)))), "cannot be read", 199, 199),
    case("an infinite score", raw("a.jsonl", json_lines([{"sentence1": q, "sentence2": a, "score": 1} for q, a in ROWS] + ['{"sentence1": "a", "sentence2": "b", "score": 1e999}'])), "finite", 200, 200),
    case("a lone surrogate", raw("a.jsonl", json_lines(objects((3, {"question": "\ud800", "answer": "x"})))), "surrogate", 199, 199),
    case("an escaped NUL", raw("a.jsonl", json_lines(objects((3, {"question": "a\0b", "answer": "x"})))), "NUL", 199, 199),
    case("cells of other types", raw("a.jsonl", json_lines(objects(*((n, {"question": value, "answer": "x"}) for n, value in enumerate([1, None, [], {}, True]))))), "Expected text", 195, 195),
    case("objects without an answer", raw("a.jsonl", json_lines(objects((3, {"question": "a"})))), "no 'answer'", 199, 199),
    # columns with types
    case("a parquet file of one long text", parquet(lambda: repeated("x" * 9_000_000, 100_000)), UNPACK),
    case("twenty million rows in a small parquet file", parquet(lambda: repeated("x", 2_000_000), 10), UNPACK),
    case("a cell of 11 MB in parquet", parquet(lambda: texts((3, "x" * 11_000_000))), "11,000,000 characters", 199, 199),
    case("parquet text that is not UTF-8", parquet(not_utf8), "Expected text", 199, 199),
    case("parquet with nulls", parquet(lambda: texts((3, None), (4, None))), "empty cell", 198, 198),
    case("parquet cut short", raw("a.parquet", b"PAR1" + bytes(100) + b"PAR1"), "cannot be read"),
    case("lists for text in parquet", parquet(lambda: pa.table({"text": [[[question]] for question in QUESTIONS]})), "Expected text", "more than 50%", SHARE),
    case("an Arrow file of one long text", saved(lambda: repeated("x" * 9_000_000, 100_000)), UNPACK),
    case("an Arrow file of compressed zeros", saved(lambda: pa.table({"text": pa.array(["\1" * 9_000_000] * 20)}), compression="zstd"), UNPACK),
    case("twenty million empty rows in Arrow", saved(lambda: pa.table({"text": pa.nulls(20_000_000)})), UNPACK),
    case("a saved data set of a pipe", saved_fifo, "a pipe"),
    case("a saved data set that climbs out", lambda folder: state(folder, '{"_data_files": [{"filename": "../a.arrow"}]}'), "outside the folder"),
    case("a state of brackets", lambda folder: state(folder, DEEP), "state.json"),
]  # fmt: skip
