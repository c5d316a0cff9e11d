"""Hostile documents: each costs itself, in little time and memory, and the others of its folder are read."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from sentloom.data import read
from sentloom.data.documents.workers import Limits, read_documents
from tests.data.documents.office import docx
from tests.data.reading import put
from tests.faults.conftest import Tally
from tests.faults.hostile_documents import CASES, MEMORY, MOST_BYTES, SECONDS, SHEET_CASES, Hostile

FAULT = "hostile documents"
ASKED = 50
QUICK = ("bomb.md.gz", "circle.pdf", "bomb.docx", "laughs.docx", "hollow.docx")


def test_some_hostile_documents_in_one_folder(tmp_path: Path) -> None:
    hold([case for case in CASES if case.name in QUICK], tmp_path)


@pytest.mark.long
def test_fifty_hostile_documents_in_one_folder(tmp_path: Path, tally: Tally) -> None:
    hold(CASES, tmp_path, tally)


def hold(cases: list[Hostile], folder: Path, tally: Tally | None = None) -> None:
    """Between every two hostile files is a good one, which is read."""
    paths = []
    for number, case in enumerate(cases):
        case.make(folder / case.name)
        paths += [folder / case.name, put(folder / f"good-{number}.md", f"# Good\n\nThe text of {number}.\n")]
    limits = Limits(seconds=SECONDS, memory=MEMORY, most_bytes=MOST_BYTES)
    by_name = dict(zip([path.name for path in paths], read_documents(paths, limits=limits), strict=True))
    for case in cases:
        with tally.case(case.what) if tally else nullcontext():
            why = by_name[case.name].get("why", "read")
            assert re.search(case.why, why), f"{case.what}: {why}"
            assert "root:" not in str(by_name[case.name].get("passages"))
    good = [answer for name, answer in by_name.items() if name.startswith("good-")]
    assert [answer["passages"][0][0] for answer in good] == [f"The text of {number}." for number in range(len(cases))]
    assert not (folder / "owned").exists()
    assert not Path("owned").exists()


@pytest.mark.long
@pytest.mark.parametrize("case", SHEET_CASES, ids=lambda case: case.what)
def test_a_hostile_spreadsheet_beside_documents_costs_itself(case: Hostile, tmp_path: Path) -> None:
    case.make(tmp_path / case.name)
    docx(tmp_path / "good.docx", [("", "The text.")])
    data = read(tmp_path)
    assert data["text"] == ["The text."]
    (unread,) = data.unread
    assert unread.name.endswith(case.name)
    assert re.search(case.why, unread.why), unread.why
