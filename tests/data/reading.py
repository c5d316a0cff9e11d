"""Write small data files, read them, and list what is reported."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sentloom.data import Dataset, read
from sentloom.data.findings import Findings
from sentloom.data.limits import STRICT, Allowance
from sentloom.errors import DataError


def rows(dataset: Dataset) -> dict[str, list[Any]]:
    return dataset.take(range(len(dataset)))


def lines(dataset: Dataset) -> list[int]:
    return dataset.column("_line").to_pylist()


def put(path: Path, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def refused(path: Path, **options: Any) -> list[str]:
    """Return the problems reported for a file, without the file's name."""
    with pytest.raises(DataError) as caught:
        read(path, **options)
    assert caught.value.total == len(caught.value.problems)
    return [str(problem).removeprefix(str(path)).removeprefix(", ") for problem in caught.value.problems]


def saved(folder: Path, parts: list[pa.Table]) -> Path:
    """Make a folder as `save_to_disk` does."""
    folder.mkdir()
    names = [f"data-{number:05}-of-{len(parts):05}.arrow" for number in range(len(parts))]
    for name, table in zip(names, parts, strict=True):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    put(folder / "state.json", json.dumps({"_data_files": [{"filename": name} for name in names]}))
    put(folder / "dataset_info.json", "{}")
    return folder


def findings(allowance: Allowance = STRICT) -> Findings:
    empty = Findings(allowance)
    empty.begin("a.csv", "line")
    return empty


def problems(recorded: Findings) -> list[str]:
    return [str(problem) for problem in recorded.error().problems]


def pairs(data) -> list[tuple[str, str]]:
    return list(zip(data.column("anchor").to_pylist(), data.column("positive").to_pylist(), strict=True))


ROWS = [(f"question {n}", f"answer {n}") for n in range(100)]


def tsv(rows: list[tuple[str, str]], **options: object) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter="\t", lineterminator="\n", **options).writerows([("question", "answer"), *rows])
    return file.getvalue()


def twins(folder: Path, left: bytes, right: bytes, names=("corpus.en-de.en", "corpus.en-de.de")) -> str:
    for name, content in zip(names, (left, right), strict=True):
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return "+".join(str(folder / name) for name in names)


def twin_rows(data) -> list[tuple[str, str]]:
    return list(zip(data.column("source").to_pylist(), data.column("target").to_pylist(), strict=True))
