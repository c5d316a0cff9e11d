"""Our readers of csv and JSON Lines against DuckDB, polars and pyarrow: time, memory, and what bad files lead to.

    pip install duckdb polars
    python -m benchmarks.reading_peers [--rows 5000000] [--rounds 3]

Speed: all turn the same questions and answers, with commas, quotes and line breaks in quotes, into an Arrow file on
disk, each in a process of its own, in turn; seconds and CPU seconds are medians. *Resident* is the peak that the
kernel reports, *anonymous* is memory that is not a mapped file (sampled). Ours also checks every cell, hashes the file
and keeps the line of every row; the others are given the columns and the dialect, and do none of this.

Files: each has one peculiarity. *Read* means that all rows are right, without rows in which everything is missing, as
polars reads blank lines. *Line* means that a bad file is refused and the right line is named; before the bad line come
a record of two lines and a blank line, so that the number of a record is not that of its line. *Passed on* means that a
value at fault comes out as it is in the file: a check of ours would find most of them, but not their lines.
DuckDB is run with the dialect given and `store_rejects`, with lines counted from the byte positions of what it rejects
(what it calls a line is a record), and once more with its own detection of the dialect.
"""

import argparse
import csv
import gzip
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.read_memory import WORDS, PeakAnonymous
from sentloom.data import read
from sentloom.data.dataset import FOLDER_VARIABLE, scratch_table

Rows = list[tuple[object, ...]]
TEXTS = {"question": "VARCHAR", "answer": "VARCHAR"}
SCORED = {"sentence1": "VARCHAR", "sentence2": "VARCHAR", "score": "DOUBLE"}
ARROW = {"VARCHAR": pa.string(), "DOUBLE": pa.float64()}
NUMBERED = re.compile(r"(?:line|row)[\s:#]*(\d+)", re.IGNORECASE)
NEWLINE = b"\n"
MEGABYTE = 1e6


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", action="store_true", help="print what each reader says about each file")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child[0], json.loads(chosen.child[1]))
        return
    names = [name for name in READERS if find_spec(PACKAGES[name])]
    print(f"left out, not installed: {', '.join({*READERS} - {*names}) or 'nothing'}")
    with tempfile.TemporaryDirectory() as folder:
        print_files(names, Path(folder), chosen.messages)
        print_speed([name for name in names if name != SNIFFING], Path(folder), chosen.rows, chosen.rounds)


def run(name: str, files: Sequence[tuple[Path, dict[str, str]]]) -> list[dict]:
    """Read files with their columns in a process of its own; if one of them ends it, the rest is read in another."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    results: list[dict] = []
    while len(results) < len(files):
        rest = json.dumps([(str(path), columns) for path, columns in files[len(results) :]])
        command = [sys.executable, "-m", "benchmarks.reading_peers", "--child", name, rest]
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        results += map(json.loads, ended.stdout.splitlines())
        if len(results) < len(files):
            results.append({"error": f"the process ended with {ended.returncode}"})
    return results


def child(name: str, files: Sequence[tuple[str, dict[str, str]]]) -> None:
    """Print a line of JSON per file."""
    import_module(PACKAGES[name])
    for path, columns in files:
        os.environ[FOLDER_VARIABLE] = str(Path(path).parent)
        print(json.dumps(measured(READERS[name], Path(path), columns)), flush=True)


def measured(reader: Callable, path: Path, columns: dict[str, str]) -> dict:
    """Read a file; what was read is looked at after the clock has stopped."""
    gauge = PeakAnonymous()
    gauge.start()
    start, processor = time.perf_counter(), time.process_time()
    try:
        table = reader(path, columns)
    except Exception as error:  # each package has its own
        return {"error": str(error)}
    finally:
        gauge.ended.set()
    result = {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE,
        "anonymous": gauge.peak / MEGABYTE,
        "rows": table.num_rows,
    }
    try:
        first = table.slice(0, 100).to_pydict()
    except UnicodeDecodeError:
        first = {"": ["text that is not UTF-8"]}
    texts = [column for column in table.columns if not pa.types.is_floating(column.type)]
    size = sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in texts)
    return result | {"first": list(zip(*first.values(), strict=True)), "size": size}


# --- the readers: a file becomes an Arrow table that is mapped from disk ---


def ours(path: Path, columns: dict[str, str]) -> pa.Table:
    table = read(path).table
    return table.drop_columns([name for name in table.column_names if name.startswith("_")])


def duckdb_given(path: Path, columns: dict[str, str]) -> pa.Table:
    options = "auto_detect=false, header=true, delim=',', quote='\"', escape='\"', store_rejects=true"
    return _duckdb(path, columns, f"{options}, columns={columns}, max_line_size=10000000")


def duckdb_sniffing(path: Path, columns: dict[str, str]) -> pa.Table:
    return _duckdb(path, columns, "all_varchar=true, header=true")


def _duckdb(path: Path, columns: dict[str, str], options: str) -> pa.Table:
    import duckdb

    connection = duckdb.connect()
    is_json = ".jsonl" in path.suffixes
    source = f"read_json('{path}', columns={columns})" if is_json else f"read_csv('{path}', {options})"
    reader = connection.sql(f"select * from {source}").to_arrow_reader(1 << 14)
    table = scratch_table(reader.schema, reader)
    with suppress(duckdb.CatalogException):
        query = "select line_byte_position, error_type, error_message from reject_errors order by line limit 10"
        if rejected := connection.execute(query).fetchall():
            raw = path.read_bytes()
            lines = [f"line {raw[:at].count(NEWLINE) + 1}: {kind}, {text}" for at, kind, text in rejected]
            raise ValueError("; ".join(lines))
    return table


def polars_reader(path: Path, columns: dict[str, str]) -> pa.Table:
    import polars as pl

    schema = {name: pl.String if kind == "VARCHAR" else pl.Float64 for name, kind in columns.items()}
    is_json = ".jsonl" in path.suffixes
    frame = pl.scan_ndjson(path, schema=schema) if is_json else pl.scan_csv(path, schema=schema)
    target = path.with_suffix(".arrow")
    frame.sink_ipc(target, compat_level=pl.CompatLevel.oldest())
    with pa.memory_map(str(target)) as file:
        return pa.ipc.open_file(file).read_all()


def pyarrow_reader(path: Path, columns: dict[str, str]) -> pa.Table:
    import pyarrow.csv
    import pyarrow.json

    types = {name: ARROW[kind] for name, kind in columns.items()}
    if ".jsonl" in path.suffixes:
        parsing = pyarrow.json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore")
        reader = pyarrow.json.open_json(path, parse_options=parsing)
    else:
        parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
        reader = pyarrow.csv.open_csv(
            path, parse_options=parsing, convert_options=pyarrow.csv.ConvertOptions(column_types=types)
        )
    return scratch_table(reader.schema, reader)


SNIFFING = "DuckDB, detecting"
READERS: dict[str, Callable[[Path, dict[str, str]], pa.Table]] = {
    "ours": ours,
    "DuckDB": duckdb_given,
    SNIFFING: duckdb_sniffing,
    "polars": polars_reader,
    "pyarrow": pyarrow_reader,
}
PACKAGES = {"ours": "sentloom", "DuckDB": "duckdb", SNIFFING: "duckdb", "polars": "polars", "pyarrow": "pyarrow"}


# --- speed ---


def print_speed(names: list[str], folder: Path, rows: int, rounds: int) -> None:
    """Print a line per kind of file and reader."""
    for path, write in ((folder / "pairs.csv", write_csv), (folder / "pairs.jsonl", write_jsonl)):
        write(path, rows)
        print(f"\n{path.name}: {rows:,} rows, {path.stat().st_size / MEGABYTE:,.0f} MB, median of {rounds}")
        results: dict[str, list[dict]] = {name: [] for name in names}
        for _, name in product(range(rounds), names):
            results[name] += run(name, [(path, TEXTS)])
        for name, runs in results.items():
            print(speed_line(name, runs, rows), flush=True)
        sizes = {one.get("size") for runs in results.values() for one in runs}
        print(f"all read the same amount of text: {len(sizes) == 1}", flush=True)
        path.unlink()


def speed_line(name: str, runs: list[dict], rows: int) -> str:
    """The medians of a reader, or why it failed."""
    if failed := next((one for one in runs if "error" in one), None):
        return f"{name:18} {failed['error']}"
    keys = ("seconds", "processor", "resident", "anonymous")
    seconds, processor, resident, anonymous = (median(one[key] for one in runs) for key in keys)
    lost = rows - runs[0]["rows"]
    return (
        f"{name:18} {seconds:6.1f} s, {processor:6.1f} s of CPU, {rows / seconds:>10,.0f} rows/s, "
        f"resident {resident:6,.0f} MB, anonymous {anonymous:6,.0f} MB, {lost:,} rows lost"
    )


def pairs(rows: int) -> Iterator[tuple[str, str]]:
    """Questions and answers, distinct by a number: half have commas, a fifth quotes, a fiftieth line breaks."""
    draw = random.Random(1)
    for number in range(rows):
        words = draw.choices(WORDS, k=20)
        comma = "," if number % 2 else ""
        quoted = f'"{words[0]}"' if number % 5 == 0 else words[0]
        end = "\n" if number % 50 == 0 else " "
        yield f"{' '.join(words[:7])} {number}?", f"{quoted}{comma} {' '.join(words[7:12])}{end}{' '.join(words[12:])}."


def write_csv(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(chain([TEXTS], pairs(rows)))


def write_jsonl(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({'question': one, 'answer': two})}\n" for one, two in pairs(rows))


# --- files with one peculiarity each ---


@dataclass(frozen=True, eq=False)
class Case:
    """A file, and what is right: its rows, or the line of its fault (0: the file as a whole).

    `values` are the rows as they are in the file if only a value is at fault; `detected` are those of a reader that
    finds out the encoding, which is as right as a refusal.
    """

    what: str
    file: str
    content: bytes
    right: Rows | int
    columns: dict[str, str] = field(default_factory=lambda: TEXTS)
    values: Rows | None = None
    detected: Rows | None = None

    def is_for(self, name: str) -> bool:
        """Whether a reader is asked: other separators only if it detects them, and detection only for csv files."""
        if name == SNIFFING:
            return ".csv" in self.file and self.columns is TEXTS
        return name == "ours" or b"question;" not in self.content


GOOD = [("a\nb", "c"), ("d", "e")]
HEAD = b'question,answer\n"a\nb",c\n\n'  # lines 1 to 4: a fault comes on line 5
JSON_HEAD = b'{"question": "a\\nb", "answer": "c"}\n\n'  # a fault comes on line 3


def _bad(what: str, line: bytes, *values: str) -> Case:
    """A csv file with a bad line, or only a bad value."""
    return Case(what, "bad.csv", HEAD + line + b"\nd,e\n", 5, values=[GOOD[0], values, GOOD[1]] if values else None)


def _bad_json(what: str, line: bytes, *values: str, right: Rows | int = 3) -> Case:
    """The same in JSON Lines."""
    content = JSON_HEAD + line + b'\n{"question": "d", "answer": "e"}\n'
    return Case(what, "bad.jsonl", content, right, values=[GOOD[0], values, GOOD[1]] if values else None)


def _score(word: str) -> Case:
    content = f'sentence1,sentence2,score\n"a\nb",c,1\n\nx,y,{word}\nd,e,1\n'.encode()
    values = [("a\nb", "c", 1.0), ("x", "y", float(word)), ("d", "e", 1.0)]
    return Case(f"score {word}", "bad.csv", content, 5, SCORED, values)


CASES = [
    Case("UTF-8 with a byte order mark", "good.csv", b"\xef\xbb\xbf" + HEAD + b"d,e\n", GOOD),
    Case("blank line, line break in quotes", "good.csv", HEAD + b"d,e\n", GOOD),
    Case("line ends of Windows", "good.csv", b"question,answer\r\na,c\r\n\r\nd,e\r\n", [("a", "c"), ("d", "e")]),
    Case("carriage returns alone", "good.csv", b"question,answer\ra,c\rd,e\r", [("a", "c"), ("d", "e")]),
    Case("semicolons", "good.csv", HEAD.replace(b",", b";") + b"d;e\n", GOOD),
    Case("first line sep=;", "good.csv", b"sep=;\n" + HEAD.replace(b",", b";") + b"d;e\n", GOOD),
    Case("gzip", "good.csv.gz", gzip.compress(HEAD + b"d,e\n"), GOOD),
    Case(
        "texts NULL, NA and 007", "good.csv", HEAD + b"NULL,NA\n007,1.50\n", [GOOD[0], ("NULL", "NA"), ("007", "1.50")]
    ),
    _bad("too few cells", b"x"),
    _bad("too many cells", b"x,y,z"),
    _bad("unclosed quote", b'x,"y'),
    _bad("text after a closing quote", b'x,"y" z'),
    _bad("quote in an unquoted cell", b'x,y "z" y', "x", 'y "z" y'),
    replace(_bad("byte of Windows-1252", b"caf\xe9,y"), detected=[GOOD[0], ("café", "y"), GOOD[1]]),
    _bad("NUL character", b"x\0,y", "x\0", "y"),
    _bad("empty cell", b"x,", "x", ""),
    _bad(r"missing value \N", b"x,\\N", "x", r"\N"),
    _bad("cell of 11 MB", b"x," + b"y" * 11_000_000),
    _score("1e999"),
    _score("nan"),
    Case("the same header twice", "bad.csv", b"question,answer,answer\na,b,c\n", 0),
    Case("UTF-16", "bad.csv", (HEAD + b"d,e\n").decode().encode("utf-16"), 1, detected=GOOD),
    Case("spreadsheet named csv", "bad.csv", b"PK\x03\x04" + bytes(range(256)), 0),
    Case(
        "truncated gzip", "bad.csv.gz", gzip.compress(HEAD + random.Random(1).randbytes(9999).hex().encode())[:-99], 0
    ),
    Case("header without rows", "bad.csv", b"question,answer\n", 0, values=[]),
    Case("empty file", "bad.csv", b"", 0, values=[]),
    Case(
        "JSON array", "good.jsonl", b'[{"question": "a\\nb", "answer": "c"},\n{"question": "d", "answer": "e"}]', GOOD
    ),
    _bad_json(
        "key twice (the last counts)",
        b'{"question": "x", "answer": "y", "answer": "z"}',
        right=[GOOD[0], ("x", "z"), GOOD[1]],
    ),
    _bad_json("comma after the object", b'{"question": "x", "answer": "y"},'),
    _bad_json("object cut off", b'{"question": "x", "ans'),
    _bad_json("a list, not an object", b'["x", "y"]'),
    _bad_json("two objects on a line", b'{"question": "x", "answer": "y"} {"question": "x", "answer": "y"}'),
    _bad_json("missing key", b'{"question": "x"}', "x", ""),
    _bad_json("number for a text", b'{"question": "x", "answer": 5}'),
    _bad_json("lone surrogate", b'{"question": "x", "answer": "\\ud800"}'),
    _bad_json("NUL character in JSON", b'{"question": "x", "answer": "\\u0000"}', "x", "\0"),
    replace(
        _bad_json("invalid UTF-8 in JSON", b'{"question": "caf\xe9", "answer": "y"}'),
        detected=[GOOD[0], ("café", "y"), GOOD[1]],
    ),
    _bad_json("100,000 brackets", b'{"question": "x", "answer": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    Case(
        "score 1e999 in JSON",
        "bad.jsonl",
        b'{"sentence1": "a", "sentence2": "b", "score": 1}\n\n{"sentence1": "a", "sentence2": "b", "score": 1e999}\n',
        3,
        SCORED,
        [("a", "b", 1.0), ("a", "b", math.inf)],
    ),
]


def print_files(names: list[str], folder: Path, messages: bool) -> None:
    """Print a row of a table per file."""
    paths = {case: folder / str(number) / case.file for number, case in enumerate(CASES)}
    for case, path in paths.items():
        path.parent.mkdir()
        path.write_bytes(case.content)
    results = {name: results_of(name, paths) for name in names}
    print(f"\n| file | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for case in CASES:
        print(f"| {case.what} | {' | '.join(verdict(case, results[name].get(case)) for name in names)} |")
        if messages:
            print(*(f"    {name}: {said(results[name].get(case))}" for name in names), sep="\n")
    right = [sum(verdict(*one) in RIGHT for one in results[name].items()) for name in names]
    print(f"| right | {' | '.join(f'{n} of {len(results[name])}' for n, name in zip(right, names, strict=True))} |")


def results_of(name: str, paths: dict[Case, Path]) -> dict[Case, dict]:
    """What a reader makes of the files that are for it."""
    asked = [case for case in paths if case.is_for(name)]
    return dict(zip(asked, run(name, [(paths[case], case.columns) for case in asked]), strict=True))


def said(result: dict | None) -> str:
    """An error, or the rows, on one line."""
    return repr(str(result.get("error") or result["first"])[:1000]) if result else "not asked"


RIGHT = ("read", "refused", "line")


def verdict(case: Case, result: dict | None) -> str:
    """One of RIGHT if a user is served well: rows as they are, or a refusal that names the line if there is one."""
    if result is None:
        return ""
    if "error" not in result:
        rows = [row for row in result["first"] if any(cell is not None for cell in row)]
        if _shown(rows) == _shown(case.values):
            return "passed on"
        right = case.detected if isinstance(case.right, int) else case.right
        return "read" if right is not None and _shown(rows) == _shown(right) else "**read wrongly**"
    if not isinstance(case.right, int):
        return "refused wrongly"
    if not case.right:
        return "refused"
    lines = [int(line) for line in NUMBERED.findall(result["error"])]
    if case.right in lines:
        return "line"
    return f"another line ({lines[0]})" if lines else "no line"


def _shown(rows: Iterable[Iterable[object]] | None) -> list[list[str]] | None:
    """Cells as text, so that not a number equals itself; a missing one is empty."""
    return None if rows is None else [["" if cell is None else str(cell) for cell in row] for row in rows]


if __name__ == "__main__":
    main()
