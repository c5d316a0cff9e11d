"""Texts inside objects and lists, lists of positives and negatives, and names of columns that are guessed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import Shape, read
from sentloom.data.nested import parse_path, value_at
from sentloom.errors import DataError, InputError
from tests.data.reading import put

TICKET = {"id": 7, "ticket": {"subject": "Printer"}, "messages": [{"content": "It is out."}, {"content": "Add toner."}]}


def jsonl(path: Path, *rows: object) -> Path:
    return put(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_columns_inside_objects_and_lists(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", TICKET, {**TICKET, "messages": [{"content": "Only one."}]})
    data = read(path, columns="anchor=ticket.subject,positive=messages[-1].content", keep=["id"])
    assert [tuple(row.values()) for row in data] == [("Printer", "Add toner.", "7"), ("Printer", "Only one.", "7")]
    assert data.used == {"anchor": "ticket.subject", "positive": "messages[-1].content"}


def test_a_row_without_the_inner_value_is_reported_like_an_empty_cell(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", TICKET, {"id": 8, "ticket": {}, "messages": []})
    with pytest.raises(DataError, match=r"line 2: empty cell in column 'ticket.subject'"):
        read(path, columns="text=ticket.subject")


def test_the_advice_for_nested_data_works_when_it_is_followed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", TICKET)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.fix.startswith("texts inside objects are named ticket.subject, messages[-1].content")
    advised = caught.value.fix.partition("columns='")[2].partition("'")[0]
    assert read(path, columns=advised)["text"] == ["Printer"]


@pytest.mark.parametrize("names", [("query", "pos", "neg"), ("anchor", "positives", "negatives")])
def test_lists_of_positives_are_a_row_each(names: tuple[str, str, str], tmp_path: Path) -> None:
    rows = [("q1", ["a", "b"], ["x", "y"]), ("q2", ["c"], [])]
    data = read(jsonl(tmp_path / "a.jsonl", *(dict(zip(names, row, strict=True)) for row in rows)))
    assert data.shape is Shape.TRIPLETS
    assert [tuple(row.values()) for row in data] == [
        ("q1", "a", ["x", "y"]),
        ("q1", "b", ["x", "y"]),
        ("q2", "c", []),
    ]
    assert [data.place(row)[-6:] for row in range(3)] == ["line 1", "line 1", "line 2"]


def test_an_empty_list_of_positives_is_an_empty_cell(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2: empty cell in column 'pos'"):
        read(jsonl(tmp_path / "a.jsonl", {"query": "q", "pos": ["a"]}, {"query": "q", "pos": []}))


@pytest.mark.parametrize(
    ("header", "shape", "used"),
    [
        ("Frage,Antwort", Shape.PAIRS, ["Frage", "Antwort"]),
        ("Nachricht,Team", Shape.CLASSIFICATION, ["Nachricht", "Team"]),
        ("Betreff,Nachricht", Shape.PAIRS, ["Betreff", "Nachricht"]),
        ("message,intent", Shape.CLASSIFICATION, ["message", "intent"]),
        ("text,label,team", Shape.CLASSIFICATION, ["text", "label"]),
    ],
)
def test_german_and_less_clear_names_are_guessed_and_said(
    header: str, shape: Shape, used: list[str], tmp_path: Path
) -> None:
    data = read(put(tmp_path / "a.csv", f"{header}\n{','.join('abc'[: header.count(',') + 1])}\n"))
    assert (data.shape, list(data.used.values())) == (shape, used)
    if used[0] in ("Nachricht", "message"):
        (note,) = data.notes
        assert f"columns='text={used[0]},label={used[1]}'" in note


def test_search_logs_keep_counts_and_leave_out_rare_clicks(tmp_path: Path) -> None:
    path = put(tmp_path / "log.csv", "query,clicked,count\nvpn,Connect from home,12\nvpn,Cards,1\ncard,Cards,3\n")
    data = read(path)
    assert (data.shape, data["count"]) == (Shape.PAIRS, ["12", "1", "3"])
    often = read(path, min_count=2)
    assert often["anchor"] == ["vpn", "card"]
    assert often.lost == {"pairs with fewer than 2 clicks": 1}


@given(st.lists(st.one_of(st.sampled_from(["a", "b"]), st.integers(-2, 1)), min_size=1, max_size=4))
def test_paths_are_read_as_they_are_written(steps: list[str | int]) -> None:
    name = "a" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    assert parse_path(name) == ("a", *steps)


def test_a_key_of_a_list_is_taken_of_every_object() -> None:
    assert value_at({"m": [{"c": 1}, {"c": 2}]}, ("m", "c")) == [1, 2]
    assert value_at({"m": []}, ("m", 0)) is None


def test_a_name_that_no_row_has_is_named_and_not_repaired(tmp_path):
    put(tmp_path / "a.jsonl", '{"ticket": {"subject": "one"}}\n{"ticket": {"subject": "two"}}\n')
    with pytest.raises(DataError, match="empty in all rows, or not what was meant") as raised:
        read(tmp_path / "a.jsonl", columns="text=ticket.subjekt")
    assert "check" not in str(raised.value)


def test_rows_in_memory_are_looked_into_like_files():
    rows = [TICKET, {**TICKET, "messages": [{"content": "Paper jam."}]}]
    data = read(rows, columns="anchor=ticket.subject,positive=messages[-1].content")
    assert data["positive"] == ["Add toner.", "Paper jam."]
    with pytest.raises(InputError, match=r"(?i)texts inside objects are named ticket.subject, messages\[-1\].content"):
        read(rows)


def test_the_column_of_clicks_is_named(tmp_path: Path) -> None:
    log = read(put(tmp_path / "log.csv", "query,clicked,Clicks\none,eins,3\n"))
    assert log.notes == (
        f"{tmp_path / 'log.csv'}: 'Clicks' says how often it was clicked (min_count leaves out what is rare)",
    )
    assert read(put(tmp_path / "a.csv", "question,answer,count\none,eins,3\n"), keep=["*"]).notes == ()
