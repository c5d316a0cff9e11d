import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data import Dataset, Shape, read, scan
from sentloom.errors import DataError, InputError, SentloomError
from tests.paths import DATA

SHARED = DATA
Table = dict[str, list[Any]]


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


def test_txt_is_always_texts(tmp_path: Path) -> None:
    dataset = read(put(tmp_path / "a.txt", "\ufeffquestion,answer\n\n  two\twords \n"))
    assert dataset.shape is Shape.TEXTS
    assert rows(dataset) == {"text": ["question,answer", "  two\twords "]}
    assert lines(dataset) == [1, 3]
    assert dataset.skipped == {"blank lines": 1}
    with pytest.raises(InputError):
        read(tmp_path / "a.txt", shape=Shape.PAIRS)


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {"id": [1, 2], "question": PAIRS["anchor"], "answer": pa.array(PAIRS["positive"]).dictionary_encode()}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet", keep=["id"])
    assert (dataset.shape, rows(dataset)) == (Shape.PAIRS, {**PAIRS, "id": ["1", "2"]})
    assert dataset.place(0) == f"{tmp_path / 'a.parquet'}, row 1"
    assert dataset.sha256 == hashlib.sha256((tmp_path / "a.parquet").read_bytes()).hexdigest()


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


def test_negatives_may_be_a_list(tmp_path: Path) -> None:
    objects = [
        {"query": "q", "positive": "p", "negatives": ["m", "n"]},
        {"query": "q", "positive": "p", "negatives": "n"},
    ]
    dataset = read(put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, objects))))
    assert rows(dataset)["negatives"] == [["m", "n"], ["n"]]
    pq.write_table(pa.Table.from_pylist(objects[:1]), tmp_path / "a.parquet")
    assert rows(read(tmp_path / "a.parquet"))["negatives"] == [["m", "n"]]


def test_rows_without_a_gold_label_are_dropped_and_counted(tmp_path: Path) -> None:
    dataset = read(put(tmp_path / "a.tsv", "premise\thypothesis\tlabel\na\tb\t-\nc\td\tneutral\ne\tf\t-1\n"))
    assert rows(dataset) == {"premise": ["c"], "hypothesis": ["d"], "label": ["neutral"]}
    assert dataset.skipped == {"rows without a gold label": 2}
    unlabelled = put(tmp_path / "b.tsv", "premise\thypothesis\tlabel\na\tb\t-\n")
    assert refused(unlabelled) == [": no rows. Expected at least one row."]


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


# --- folders, saved data, the hub ---


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    put(tmp_path / "b.csv", "question,answer\nq2,a2\n")
    put(tmp_path / "a.csv.gz", "answer,question\na1,q1\n")
    put(tmp_path / ".hidden.csv", "x\n")
    put(tmp_path / "README.md", "x\n")
    dataset = read(tmp_path)
    assert rows(dataset) == {"anchor": ["q1", "q2"], "positive": ["a1", "a2"]}
    assert [dataset.place(row) for row in range(2)] == [
        f"{tmp_path / 'a.csv.gz'}, line 2",
        f"{tmp_path / 'b.csv'}, line 2",
    ]
    sums = [f"{hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}  {name}\n" for name in ("a.csv.gz", "b.csv")]
    assert dataset.sha256 == hashlib.sha256("".join(sums).encode()).hexdigest()


def test_links_in_a_folder_must_stay_inside_it(tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.txt", "a secret\n")
    (tmp_path / "data").mkdir()
    put(tmp_path / "data/a.txt", "one two\n")
    (tmp_path / "data/b.txt").symlink_to("a.txt")
    assert rows(read(tmp_path / "data")) == {"text": ["one two", "one two"]}
    (tmp_path / "data/c.txt").symlink_to(secret)
    with pytest.raises(InputError, match=r"'c\.txt' links out of the folder"):
        read(tmp_path / "data")
    assert rows(read(tmp_path / "data/c.txt")) == {"text": ["a secret"]}  # given by the user


@pytest.mark.parametrize("folder", ["snapshots/1", "snapshots/1/data"])
def test_links_of_the_hubs_cache_are_followed(folder: str, tmp_path: Path) -> None:
    for made in ("blobs", folder):
        (tmp_path / made).mkdir(parents=True)
    (tmp_path / folder / "a.txt").symlink_to(put(tmp_path / "blobs/abc", "one two\n"))
    assert rows(read(tmp_path / folder)) == {"text": ["one two"]}


def test_a_folder_must_hold_data_of_one_kind_and_shape(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no data files here"):
        read(tmp_path)
    put(tmp_path / "a.csv", "question,answer\nq,a\n")
    put(tmp_path / "b.csv", "source,target\ns,t\n")
    with pytest.raises(
        DataError, match=r"b\.csv: found parallel with source, target. Expected pairs .* as in .*a\.csv."
    ):
        read(tmp_path)
    put(tmp_path / "c.tsv", "source\ttarget\ns\tt\n")
    with pytest.raises(InputError, match="files of the kinds csv, tsv"):
        read(tmp_path)


def test_problems_of_all_files_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "text\n" + '""\n' * 7)
    put(tmp_path / "b.csv", "text\n" + '""\n' * 7)
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert caught.value.total == 14
    assert [problem.file for problem in caught.value.problems] == [str(tmp_path / "a.csv")] * 7 + [
        str(tmp_path / "b.csv")
    ] * 3


FEATURES = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["not_entailment", "entailment"]}}}}


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


def test_saved_data_count_their_rows_over_all_files_and_name_their_classes(tmp_path: Path) -> None:
    parts = [
        pa.table({"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": labels}).replace_schema_metadata(
            {"huggingface": json.dumps(FEATURES)}
        )
        for labels in ([0, 1], [1, 1])
    ]
    dataset = read(saved(tmp_path / "s", parts))
    assert dataset.shape is Shape.NLI
    assert rows(dataset)["label"] == ["not_entailment", "entailment", "entailment", "entailment"]
    assert [dataset.place(row) for row in range(4)] == [f"{tmp_path / 's'}, row {row}" for row in (1, 2, 3, 4)]
    (tmp_path / "s" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(InputError, match=r"state\.json: no such file: data-00001-of-00002\.arrow"):
        read(tmp_path / "s")
    put(tmp_path / "s" / "state.json", "{}")
    with pytest.raises(InputError, match=r"state\.json"):
        read(tmp_path / "s")


def test_data_saved_by_the_datasets_package_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]})
    made = made.cast_column("label", datasets.ClassLabel(names=["no", "yes"]))
    made.save_to_disk(tmp_path / "one")
    made.to_parquet(tmp_path / "a.parquet")
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "two")
    for path in (tmp_path / "one", tmp_path / "two" / "train", tmp_path / "a.parquet"):
        assert rows(read(path)) == {"text": ["a", "b"], "label": ["yes", "no"]}
    with pytest.raises(InputError, match="the splits test, train"):
        read(tmp_path / "two")


def run_offline(code: str, folder: Path) -> str:
    pytest.importorskip("datasets")
    source = str(Path(scan.__file__).parents[2])
    caches = {"HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": source}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **caches}, check=True, capture_output=True, text=True
    ).stdout


def test_a_name_that_is_neither_a_path_nor_on_the_hub(tmp_path: Path) -> None:
    code = """
from sentloom.data import read
from sentloom.errors import InputError
try:
    read("nobody/nothing@main:test")
except InputError as error:
    print(error)
"""
    message = run_offline(code, tmp_path)
    assert "no such path, and no such data set on the hub" in message
    assert "owner/name[/configuration][@revision][:split]" in message


def test_a_data_set_by_its_hub_name(tmp_path: Path) -> None:
    """Needs no network: the package uses a local folder as the repository of that name."""
    (tmp_path / "owner" / "name").mkdir(parents=True)
    put(tmp_path / "owner" / "name" / "train.csv", "question,answer\nq1,a1\n")
    put(tmp_path / "owner" / "name" / "test.csv", "question,answer\nq2,a2\n")
    code = """
from sentloom.data import read
for name in ("owner/name@main", "owner/name:test"):
    data = read(name)
    print(data.shape, data.take([0]), data.place(0))
"""
    assert run_offline(code, tmp_path).splitlines() == [
        "pairs {'anchor': ['q1'], 'positive': ['a1']} owner/name@main, row 1",
        "pairs {'anchor': ['q2'], 'positive': ['a2']} owner/name:test, row 1",
    ]


# --- problems are reported ---


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("content", ["", "\n\n \n", "\ufeff"])
def test_empty_files(name: str, content: str, tmp_path: Path) -> None:
    assert refused(put(tmp_path / name, content)) == [": the file is empty. Expected at least one row."]


def test_a_file_with_only_a_header(tmp_path: Path) -> None:
    assert refused(put(tmp_path / "a.csv", "text\n")) == [": no rows. Expected at least one row."]
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet") == [": no rows. Expected at least one row."]


def test_problems_of_cells_in_text(tmp_path: Path) -> None:
    content = b"sentence1\tsentence2\tscore\na\tb\nc\t \tx\nd\te\tnan\n\xff\tf\t1\t2\n\ng\th\t1\n"
    assert refused(put(tmp_path / "a.tsv", content)) == [
        "line 2: found 2 cells. Expected 3 cells, as in the first line.",
        "line 3: empty cell in column 'sentence2'. Expected text.",
        "line 3: found 'x' in column 'score'. Expected a finite number.",
        "line 4: found 'nan' in column 'score'. Expected a finite number.",
        "line 5: invalid byte 0xFF at byte 1 of the line. Expected UTF-8.",
        "line 5: found 4 cells. Expected 3 cells, as in the first line.",
    ]


def test_problems_of_values_in_json(tmp_path: Path) -> None:
    objects = [
        '{"sentence1": "a", "sentence2": "b", "score": 1}',
        '{"sentence1": 7, "sentence2": null, "score": "x"}',
        '{"sentence1": "a", "score": 1}',
        '{"sentence1": "\\ud800", "sentence2": "x\\u0000", "score": NaN}',
        '{"sentence1": "\\ud83d\\ude00", "sentence2": ["b"], "score": 1' + "0" * 400 + "}",
    ]
    assert refused(put(tmp_path / "a.jsonl", "\n".join(objects))) == [
        "line 2: found 7 in column 'sentence1'. Expected text.",
        "line 2: empty cell in column 'sentence2'. Expected text.",
        "line 2: found 'x' in column 'score'. Expected a finite number.",
        "line 3: the object has no 'sentence2'. Expected every column in every object.",
        "line 4: lone surrogate U+D800 at character 1 in column 'sentence1'. Expected whole characters.",
        "line 4: NUL character at character 2 in column 'sentence2'. Expected text.",
        "line 4: found nan in column 'score'. Expected a finite number.",
        "line 5: found ['b'] in column 'sentence2'. Expected text.",
        f"line 5: found 1{'0' * 39}... in column 'score'. Expected a finite number.",
    ]


@pytest.mark.parametrize("escape", ["\\u0000", "\\udfff"])
def test_a_single_escaped_problem_is_found(escape: str, tmp_path: Path) -> None:
    objects = ['{"text": "fine"}', f'{{"text": "not {escape}"}}', '{"text": "fine"}']
    (message,) = refused(put(tmp_path / "a.jsonl", "\n".join(objects)))
    assert message.startswith("line 2: ")
    assert "at character 5 in column 'text'" in message


def test_problems_of_rows_in_parquet(tmp_path: Path) -> None:
    bad = pa.array([b"fine", b"caf\xe9", None, b" "], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": bad, "label": ["a", "b", "c", None]}), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet") == [
        "row 2: found b'caf\\xe9' in column 'text'. Expected text.",
        "row 3: empty cell in column 'text'. Expected text.",
        "row 4: empty cell in column 'text'. Expected text.",
        "row 4: empty cell in column 'label'. Expected a label.",
    ]


@pytest.mark.parametrize(("label", "expected"), [("maybe", "entailment, neutral"), ("3", "entailment, neutral")])
def test_unknown_nli_labels(label: str, expected: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f"premise,hypothesis,label\na,b,neutral\na,b,{label}\n")
    (message,) = refused(path)
    assert message.startswith(f"line 3: found {label!r} in column 'label'. Expected {expected}")


def test_damage_in_the_header_is_reported_before_its_names(tmp_path: Path) -> None:
    (message,) = refused(put(tmp_path / "a.csv", b"te\xffxt\na\n"))
    assert message == "line 1: invalid byte 0xFF at byte 3 of the line. Expected UTF-8."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xlsx", "unsupported extension '.xlsx'"),
        ("a.parquet.gz", "unsupported extension '.gz'"),
        ("nofile", "unsupported extension ''"),
    ],
)
def test_unknown_extensions(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(put(tmp_path / name, "x"))


def test_paths_that_do_not_exist(tmp_path: Path) -> None:
    for path in (tmp_path / "a.csv", "missing/faq.csv", "a\0b", "x" * 5000, "a b"):
        with pytest.raises(SentloomError):
            read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_files_without_read_permission(name: str, tmp_path: Path) -> None:
    put(tmp_path / name, "x").chmod(0)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_files_that_are_not_parquet(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read(put(tmp_path / "a.parquet", content))


# --- properties ---

# Text that every format can hold, without blank cells, which are refused.
SENTENCE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
SIMPLE = SENTENCE.filter(lambda text: not set(text) & set("\t\n\r"))
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
        ("csv", write_csv, SENTENCE),
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BLOCK", block)
        dataset = read(path)
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BLOCK", block)
        if bad or not good:
            with pytest.raises(DataError) as caught:
                read(path)
            assert caught.value.total == max(len(bad), 1)
            assert [problem.place for problem in caught.value.problems] == [f"line {n}" for n in bad[:10]] or [""]
        else:
            assert lines(read(path)) == good


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
