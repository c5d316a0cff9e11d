"""Files that are one JSON array, as pandas writes them with orient="records"."""

import gzip
import json
from pathlib import Path

import pytest

from sentloom.data import read
from sentloom.data.limits import CLEANING, Allowance
from sentloom.errors import DataError

OBJECTS = [{"question": f"q {n}", "answer": 'ä "],[{}\\'} for n in range(30)]
FORMS = {
    "one line": json.dumps(OBJECTS),
    "indented": json.dumps(OBJECTS, indent=2),
    "one object a line": "[\n" + ",\n".join(map(json.dumps, OBJECTS)) + "\n]\n",
    "a comma behind the last object": "\ufeff [" + "".join(f"{json.dumps(row)} , " for row in OBJECTS) + "] ",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_every_form_is_read_with_a_note(form: str, block: int, tmp_path: Path) -> None:
    for name in ("a.json", "a.jsonl", "a.json.gz"):
        raw = FORMS[form].encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        data = read(tmp_path / name, allow=Allowance(block=block))
        assert data.column("anchor").to_pylist() == [row["question"] for row in OBJECTS]
        assert data.column("positive").to_pylist() == [row["answer"] for row in OBJECTS]
        assert data.place(29) == f"{tmp_path / name}, row 30"
        assert data.notes == (f"{tmp_path / name}: read as one JSON array, with one row per object",)


def test_an_array_may_be_longer_than_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": "x" * 6_000_000}, {"text": "y" * 6_000_000}]))
    assert len(read(tmp_path / "a.json")) == 2
    (tmp_path / "a.json").write_text(json.dumps([{"text": "x" * 12_000_000}]))
    with pytest.raises(DataError, match=r"row 1: .* more than 10,000,000 characters"):
        read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"text": "a"}', "row 2: unexpected end of the file. Expected a comma or the closing bracket"),
        ('[{"text": "a"}, {"te', "row 2: invalid JSON .*. Expected an object"),
        ('[{"text": "a"} {"text": "b"}]', 'row 2: found \'{"text": "b"}\\]\'. Expected a comma or the closing bracket'),
        ('[{"text": "a"}]\n[{"text": "b"}]', "row 2: .*. Expected the end of the file"),
        ('[{"text": "a"}, 7]', "row 2: found the JSON value '7'. Expected a JSON object"),
        ('[{"text": "a"}, {"text": ""}]', "row 2: empty cell"),
        ("[]", "the file is empty"),
        ("[" * 100_000, "row 1: invalid JSON"),
    ],
)
def test_problems_are_located_by_row(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.json")


def test_bytes_that_are_not_utf8_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'[{"text": "a"}, {"text": "\xff"}]')
    with pytest.raises(DataError, match=r"row 2: invalid byte 0xFF .*. Expected UTF-8"):
        read(tmp_path / "a.json")


def test_json_lines_may_be_named_json_and_settings_in_a_folder_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"text": "a"}\n{"text": "b"}\n')
    assert len(read(tmp_path / "settings.json")) == 2
    (tmp_path / "a.csv").write_text("text\nc\n")
    assert read(tmp_path).column("text").to_pylist() == ["c"]


def test_cleaning_does_not_advise_cleaning(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no JSON\nat all\n")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.jsonl", allow=CLEANING)
    assert "sentloom check" not in str(caught.value)
    assert "the right file" in str(caught.value)
