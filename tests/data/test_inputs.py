"""A name becomes inputs: files, folders, twin files, saved data sets, hub names."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.data import read, scan
from sentloom.errors import DataError, InputError, SentloomError
from tests.data.reading import put, rows, twins


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
    data = read(tmp_path / "data")
    assert rows(data) == {"text": ["one two", "one two"]}
    assert data.unread == ((str(tmp_path / "data/c.txt"), "links out of the folder"),)
    assert rows(read(tmp_path / "data/c.txt")) == {"text": ["a secret"]}  # given by the user


@pytest.mark.parametrize("folder", ["snapshots/1", "snapshots/1/data"])
def test_links_of_the_hubs_cache_are_followed(folder: str, tmp_path: Path) -> None:
    for made in ("blobs", folder):
        (tmp_path / made).mkdir(parents=True)
    (tmp_path / folder / "a.txt").symlink_to(put(tmp_path / "blobs/abc", "one two\n"))
    assert rows(read(tmp_path / folder)) == {"text": ["one two"]}


def test_data_files_of_a_folder_must_have_one_shape(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no documents or data files here"):
        read(tmp_path)
    put(tmp_path / "a.csv", "question,answer\nq,a\n")
    put(tmp_path / "b.csv", "source,target\ns,t\n")
    with pytest.raises(
        DataError, match=r"b\.csv: found parallel with source, target. Expected pairs .* as in .*a\.csv."
    ):
        read(tmp_path)
    put(tmp_path / "b.csv", "question,answer\nq2,a2\n")
    put(tmp_path / "c.tsv", "question\tanswer\nq3\ta3\n")
    assert read(tmp_path)["answer"] == ["a", "a2", "a3"]


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xml", "unsupported extension '.xml'"),
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


def test_missing_files_and_files_with_columns_are_refused(tmp_path) -> None:
    name = twins(tmp_path, b"a\n", b"b\n")
    with pytest.raises(InputError, match=r"no such file: .*nowhere"):
        read(name.replace(".de", ".nowhere").replace("en.nowhere", "en-de"))
    with pytest.raises(InputError, match="is a table with columns"):
        read(twins(tmp_path, b"text\na\n", b"text\nb\n", ("a.csv", "b.csv")))
    with pytest.raises(DataError, match="the file is empty"):
        read(twins(tmp_path, b"", b""))
