"""Written data reads back the same, in every format."""

import json

import pytest

from sentloom.data import read
from sentloom.data.dataset import FILE, LINE
from sentloom.data.writers import write
from sentloom.errors import InputError
from tests.data.reading import put

FILES = {
    "texts.txt": "One line.\nZwei Zeilen, ja.\n",
    "pairs.jsonl": '{"anchor": "a \\"quoted\\" one", "positive": "b, with commas"}\n{"anchor": "é", "positive": "ü"}\n',
    "triplets.tsv": "anchor\tpositive\tnegative_1\tnegative_2\na\tb\tc\td\ne\tf\tg\th\n",
    "scored.csv": "sentence1,sentence2,score\na,b,0.25\nc,d,5\n",
    "nli.csv": "premise,hypothesis,label\na,b,entailment\na,c,contradiction\n",
}


def rows(data):
    return data.table.drop_columns([FILE, LINE]).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "tsv.gz", "jsonl.gz"])
@pytest.mark.parametrize("name", list(FILES))
def test_round_trip(tmp_path, name, ending):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    data = read(tmp_path / name)
    write(data, tmp_path / f"out.{ending}")
    again = read(tmp_path / f"out.{ending}")
    assert again.shape == data.shape
    assert rows(again) == rows(data)


def test_the_file_that_was_read_is_not_replaced(tmp_path):
    path = put(tmp_path / "faq.csv", "question,answer\na,b\n")
    with pytest.raises(InputError, match="the rows were read from this file"):
        write(read(path), path)
    assert path.read_text() == "question,answer\na,b\n"


def test_only_texts_are_written_to_txt(tmp_path):
    (tmp_path / "a.txt").write_text(FILES["texts.txt"])
    (tmp_path / "b.jsonl").write_text(FILES["pairs.jsonl"])
    write(read(tmp_path / "a.txt"), tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == FILES["texts.txt"]
    with pytest.raises(InputError, match="txt for texts only"):
        write(read(tmp_path / "b.jsonl"), tmp_path / "out2.txt")
    with pytest.raises(InputError, match="cannot write pairs as 'parquet'"):
        write(read(tmp_path / "b.jsonl"), tmp_path / "out.parquet.gz")
    with pytest.raises(InputError, match="cannot write pairs as 'xlsx'"):
        write(read(tmp_path / "b.jsonl"), tmp_path / "out.xlsx")


def test_unsupported_cells_are_refused_and_no_file_remains(tmp_path):
    (tmp_path / "a.csv").write_text('text\n"two\nlines"\n')
    (tmp_path / "b.jsonl").write_text(
        '{"anchor": "a", "positive": "b", "negatives": ["c"]}\n{"anchor": "a", "positive": "b", "negatives": ["c", "d"]}\n'
    )
    with pytest.raises(InputError, match="line break or tab"):
        write(read(tmp_path / "a.csv"), tmp_path / "out.tsv")
    with pytest.raises(InputError, match="different numbers of negatives"):
        write(read(tmp_path / "b.jsonl"), tmp_path / "out.csv")
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_formulas_are_escaped_on_request(tmp_path) -> None:
    data = read(put(tmp_path / "a.jsonl", json.dumps({"sentence1": "=1+1", "sentence2": "-x", "score": -2}) + "\n"))
    write(data, tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().splitlines()[1] == "=1+1,-x,-2.0"
    for ending, mark in (("csv", ","), ("tsv", "\t")):
        write(data, tmp_path / f"safe.{ending}", spreadsheet_safe=True)
        assert (tmp_path / f"safe.{ending}").read_text().splitlines()[1] == mark.join(["'=1+1", "'-x", "-2.0"])
