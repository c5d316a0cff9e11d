"""A reproduced table shows measured, published and their difference, and says what did not run."""

import json
from dataclasses import replace

import pytest

from sentloom.engine.schema import Quoted
from sentloom.errors import InputError
from sentloom.lab.reproduction import (
    TINY,
    Lack,
    NotRun,
    Reproduction,
    notes,
    refuse_foreign_tables,
    reproduction_markdown,
    write_reproduction,
)
from sentloom.lab.results import Row

ROW = Row(
    name="ours", seeds=3, base="b", before={"A": 10.0}, start="b", at_start={"A": 10.0}, after={"A": 41.5, "B": 7.0},
    deviation={"A": 0.25, "B": None}, published={"A": 40.0, "mean": 39.0}, seconds=1.0, trained=True, transductive=True,
)  # fmt: skip
FOUND = Reproduction(
    "Table 1",
    ("ours", "other", "wild"),
    {"ours": ROW},
    {
        "other": NotRun({"A": 50.0}, (Lack("data of nli: nli.tsv", "example.org", "set NLI=FILE"),)),
        "wild": NotRun({}, why="it stopped: step 3"),
    },
    {"theirs": Quoted(published={"A": 60.0}, why="no weights are published")},
)


def test_measured_published_and_difference_as_markdown():
    text = reproduction_markdown(FOUND)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert cells[0] == ["row", "A", "B", "mean"]
    assert cells[2:] == [
        ["ours (transductive)", "41.50 ± 0.25", "7.00", ""],
        ["published", "40.00", "", "39.00"],
        ["difference", "+1.50", "", ""],
        ["other, published", "50.00", "", ""],
        ["wild, published", "", "", ""],
        ["theirs, published", "60.00", "", ""],
    ]


def test_a_tiny_run_claims_no_difference():
    text = reproduction_markdown(replace(FOUND, tiny=True))
    assert "difference" not in text
    assert "40.00" in text


def test_notes_say_what_is_missing_whence_and_whither():
    said = notes(FOUND)
    assert "not here: data of nli: nli.tsv (from example.org); set NLI=FILE. Needed by: other" in said
    assert "wild: it stopped: step 3" in said
    assert "theirs: cannot be run: no weights are published" in said
    assert "± is the standard deviation over 3 seeds" in said
    assert TINY not in said
    assert notes(Reproduction("Table 1", (), tiny=True)) == [TINY]


def test_files_are_written_and_foreign_ones_are_not_replaced(tmp_path):
    write_reproduction(FOUND, tmp_path)
    refuse_foreign_tables(tmp_path)
    values = json.loads((tmp_path / "table.json").read_text())
    assert values["rows"]["ours"]["after"] == {"A": 41.5, "B": 7.0}
    assert values["quoted"]["theirs"]["why"] == "no weights are published"
    (tmp_path / "table.json").unlink()
    with pytest.raises(InputError, match="was not written by sentloom"):
        refuse_foreign_tables(tmp_path)
