import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data import Shape, read
from sentloom.data.findings import NO_ROWS
from sentloom.data.limits import FITTING, STRICT, Allowance
from sentloom.data.sources import NULL
from sentloom.errors import DataError, InputError
from tests.data.reading import lines, put, refused, rows
from tests.paths import DATA

SHARED = DATA
Table = dict[str, list[Any]]


# --- every file format ---

PAIRS = {"anchor": ["was ist das?", "und das?"], "positive": ["ein Bär", "ein Zug"]}
CONTENTS = {
    "a.csv": 'question,answer\n"was ist das?",ein Bär\nund das?,ein Zug\n',
    "a.tsv": "question\tanswer\nwas ist das?\tein Bär\nund das?\tein Zug\n",
    "a.jsonl": '{"question": "was ist das?", "answer": "ein B\\u00e4r"}\n{"answer": "ein Zug", "question": "und das?"}\n',
}


@pytest.mark.parametrize("name", [*CONTENTS, *(f"{name}.gz" for name in CONTENTS), "A.TSV"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_pairs_in_every_kind(name: str, line_end: str, tmp_path: Path) -> None:
    content = CONTENTS[name.lower().removesuffix(".gz")].replace("\n", line_end)
    path = put(tmp_path / name, content)
    dataset = read(path)
    assert (dataset.shape, rows(dataset)) == (Shape.PAIRS, PAIRS)
    assert lines(dataset) == ([1, 2] if "jsonl" in name else [2, 3])
    assert dataset.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert dataset.place(1) == f"{path}, line {2 if 'jsonl' in name else 3}"
    assert dataset.used == {"anchor": "question", "positive": "answer"}


@pytest.mark.parametrize(
    ("header", "row", "shape", "cells"),
    [
        ("text,label", "a,1", "classification", ["a", "1"]),
        ("sentence1,sentence2,score", "a,b,4.5", "scored-pairs", ["a", "b", 4.5]),
        ("sentence1,sentence2,label", "a,b,1", "scored-pairs", ["a", "b", 1.0]),
        ("sentence1,sentence2,label", "a,b,Entailment", "nli", ["a", "b", "entailment"]),
        ("premise,hypothesis,label", "a,b,2", "nli", ["a", "b", "contradiction"]),
        ("source,target", "a,b", "parallel", ["a", "b"]),
        ("sent0,sent1,hard_neg", "a,b,c", "triplets", ["a", "b", ["c"]]),
        ("anchor,positive,negative_1,negative_2", "a,b,c,d", "triplets", ["a", "b", ["c", "d"]]),
    ],
)
def test_every_shape(header: str, row: str, shape: str, cells: list[Any], tmp_path: Path) -> None:
    dataset = read(put(tmp_path / "a.csv", f"{header}\n{row}\n"))
    assert dataset.shape == shape
    assert [column[0] for column in rows(dataset).values()] == cells


def test_columns_shape_and_keep(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "id,title,body,Subset\n1,t,b,\n")
    dataset = read(path, columns={"text": "body"}, keep=["subset", "genre"])
    assert (dataset.shape, rows(dataset)) == (Shape.TEXTS, {"text": ["b"], "subset": [""]})
    assert dataset.ignored == ("id", "title")
    assert rows(read(path, shape=Shape.PAIRS)) == {"anchor": ["t"], "positive": ["b"]}
    headless = read(path, columns={"anchor": 2, "positive": 3})
    assert rows(headless) == {"anchor": ["title", "t"], "positive": ["body", "b"]}
    assert lines(headless) == [1, 2]
    assert headless.used == {"anchor": "column 2", "positive": "column 3"}
    with pytest.raises(InputError, match="columns cannot be given by number"):
        read(put(tmp_path / "a.jsonl", '{"text": "a"}'), columns={"text": 1})


# --- problems are reported ---


def test_a_file_with_only_a_header(tmp_path: Path) -> None:
    assert refused(put(tmp_path / "a.csv", "text\n")) == [": there are no rows. Expected at least one row."]
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet") == [": there are no rows. Expected at least one row."]


def test_nobody_is_told_to_clean_rows_that_are_not_there(tmp_path: Path) -> None:
    for data in (put(tmp_path / "a.csv", "text\n"), []):
        for allow in (STRICT, FITTING):
            with pytest.raises(DataError) as caught:
                read(data, allow=allow)
            assert caught.value.fix == NO_ROWS
    with pytest.raises(InputError, match=r"found None.*\nPass the rows, or the path of a file;"):
        read(None)


# --- properties ---

# Text that every format can hold, without blank cells, which are refused.
SENTENCE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
DELIMITED = SENTENCE.filter(lambda text: text != NULL)  # which is a missing value there
# Cells that start with a quote can be read two ways, with quotes and without; see test_dialects.py.
SIMPLE = DELIMITED.filter(lambda text: not set(text) & set("\t\n\r") and not text.startswith('"'))
SCORE = st.floats(allow_nan=False, allow_infinity=False)


def write_csv(path: Path, table: Table) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def write_tsv(path: Path, table: Table) -> None:
    rows = [list(table), *zip(*table.values(), strict=True)]
    put(path, "".join("\t".join(map(str, row)) + "\n" for row in rows))


def write_jsonl(path: Path, table: Table) -> None:
    objects = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    put(path, "".join(json.dumps(item) + "\n" for item in objects))


def write_parquet(path: Path, table: Table) -> None:
    pq.write_table(pa.table(table), path, row_group_size=3)


@pytest.mark.parametrize(
    ("kind", "write", "cell"),
    [
        ("csv", write_csv, DELIMITED),
        ("tsv", write_tsv, SIMPLE),
        ("jsonl", write_jsonl, SENTENCE),
        ("parquet", write_parquet, SENTENCE),
    ],
)
@settings(max_examples=40)
@given(data=st.data(), block=st.integers(1, 200))
def test_written_data_reads_back_the_same(
    kind: str,
    write: Callable[[Path, Table], None],
    cell: st.SearchStrategy[str],
    data: st.DataObject,
    block: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    columns = list(zip(*data.draw(st.lists(st.tuples(cell, cell, SCORE), min_size=1, max_size=12)), strict=True))
    table = dict(zip(("sentence1", "sentence2", "score"), map(list, columns), strict=True))
    path = tmp_path_factory.mktemp("written") / f"a.{kind}"
    write(path, table)
    dataset = read(path, allow=Allowance(block=block))
    assert rows(dataset) == table
    if kind == "csv":
        ends = [sum(str(cell).count("\n") for cell in row) + 1 for row in zip(*table.values(), strict=True)]
        assert lines(dataset) == [2 + sum(ends[:row]) for row in range(len(ends))]
    else:
        first = 2 if kind == "tsv" else 1
        assert lines(dataset) == list(range(first, first + len(dataset)))


@settings(max_examples=25)
@given(
    cells=st.lists(st.sampled_from(["fine", "", " ", "a\tb", "\xff", "n\0l", "\r"]), min_size=1, max_size=30),
    block=st.integers(1, 60),
)
def test_every_bad_line_is_found(cells: list[str], block: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Read tsv lines with one column; the oracle judges each line on its own."""
    path = tmp_path_factory.mktemp("bad") / "a.tsv"
    put(path, b"text\n" + b"".join(cell.encode("latin-1") + b"\n" for cell in cells))
    bad = [line for line, cell in enumerate(cells, 2) if cell in ("a\tb", "\xff", "n\0l")]
    good = [line for line, cell in enumerate(cells, 2) if cell == "fine"]
    if bad or not good:
        with pytest.raises(DataError) as caught:
            read(path, allow=Allowance(block=block))
        assert caught.value.total == max(len(bad), 1)
        assert [problem.place for problem in caught.value.problems] == [f"line {n}" for n in bad[:10]] or [""]
    else:
        assert lines(read(path, allow=Allowance(block=block))) == good


def test_rows_are_on_disk_and_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(scratch))
    path = put(tmp_path / "a.txt", "a sentence of some length\n" * 200_000)
    before = pa.total_allocated_bytes()
    dataset = read(path)
    assert len(dataset) == 200_000
    assert pa.total_allocated_bytes() - before < 500_000  # the table's buffers are mapped, not allocated
    assert list(scratch.iterdir()) == []
    assert dataset.take([199_999]) == {"text": ["a sentence of some length"]}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("sts/STS12.tsv", Shape.SCORED_PAIRS, 3108),
        ("sts/STSB.train.tsv", Shape.SCORED_PAIRS, 5749),
        ("glue/RTE.dev.tsv", Shape.NLI, 277),
        ("senteval/MR.tsv", Shape.CLASSIFICATION, 10662),
        ("nli/triplets.de.tsv", Shape.TRIPLETS, 2500),
        ("parallel/3am.en-zh.test.tsv.gz", Shape.PARALLEL, 1000),
        ("qa/WikiQA.dev.tsv", Shape.SCORED_PAIRS, 1130),
        ("pairs/quora_duplicates.en.tsv.gz", Shape.PAIRS, 10000),
    ],
)
def test_real_data(name: str, shape: Shape, count: int) -> None:
    dataset = read(SHARED / name)
    assert (dataset.shape, len(dataset)) == (shape, count)
