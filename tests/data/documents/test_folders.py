"""Folders of documents are read as one set of passages; every other file is listed with its reason."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sentloom.data import Shape, read
from sentloom.data.documents.workers import Limits, read_documents
from sentloom.errors import DataError, InputError
from tests.data.documents.office import docx, pdf, xlsx
from tests.data.reading import put

WRAPPED = "These lines are wrapped at a width that a\nterminal has, and so they are a paragraph\nof a document.\n\nThe second paragraph is here, which is as\nlong as that.\n"


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A folder as teams have it: sixty documents, and what lies between them."""
    folder = tmp_path / "docs"
    (folder / "how-to" / "old").mkdir(parents=True)
    for number in range(57):
        put(
            folder / "how-to" / f"{number:02}.md",
            f"# Topic {number}\n\nText of topic {number}.\n\n## More\n\nMore of {number}.\n",
        )
    put(folder / "notes.txt", "One sentence.\nAnother sentence.\n")
    put(folder / "how-to/old/letter.txt", WRAPPED)
    put(folder / "page.html", "<title>Page</title><nav>Menu</nav><p>See <a href='how-to/03.md#more'>topic three</a>.")
    pdf(folder / "scan.pdf", [[]])
    return folder


def test_a_folder_of_documents(messy: Path) -> None:
    data = read(messy, keep=("title", "section", "document", "links"))
    assert data.shape is Shape.TEXTS
    assert data.reading == ["61 files: 60 read, 1 not read: 1 without text", f"  {messy}/scan.pdf: without text"]
    by_place = {data.place(row): data[row] for row in range(len(data))}
    assert by_place[f"{messy}/how-to/05.md, passage 2"] == {
        "text": "More of 5.",
        "title": "Topic 5",
        "section": "More",
        "document": "how-to/05.md",
        "links": "",
    }
    assert by_place[f"{messy}/notes.txt, passage 2"]["text"] == "Another sentence."
    assert by_place[f"{messy}/how-to/old/letter.txt, passage 1"]["text"].endswith("which is as long as that.")
    page = by_place[f"{messy}/page.html, passage 1"]
    assert page["text"] == "See topic three."
    assert json.loads(page["links"]) == [["topic three", "how-to/03.md#more"]]
    assert len(data) == 2 * 57 + 2 + 1 + 1


def test_files_that_are_not_read_are_listed(messy: Path) -> None:
    put(messy / ".hidden.md", "x")
    put(messy / "photo.jpg", b"\xff\xd8")
    put(messy / "~$letter.docx", "x")
    put(messy / "settings.json", "{}")
    put(messy / "binary.md", b"a\0b")
    put(messy / "faq.csv", "question,answer\nq,a\n")
    put(messy / "more.csv", "text,id\nA row of text.,7\n")
    put(messy / "numbers.csv", "a,b\n1,2\n")
    put(messy / "cut.parquet", b"PAR1")
    (messy / "secret.md").symlink_to("/etc/passwd")
    (messy / "loop").symlink_to(messy)
    data = read(messy, keep=("title",))
    assert {name.removeprefix(f"{messy}/"): why.partition(" (")[0] for name, why in data.unread} == {
        ".hidden.md": "hidden",
        "photo.jpg": "of the kind .jpg",
        "~$letter.docx": "hidden",
        "settings.json": "often settings",
        "binary.md": "binary",
        "numbers.csv": "without a column of texts",
        "cut.parquet": "the data cannot be read",
        "faq.csv": "with pairs instead of texts",
        "secret.md": "links out of the folder",
        "loop": "a link to a folder",
        "scan.pdf": "without text",
    }
    assert data[len(data) - 1] == {"text": "A row of text.", "title": ""}


def test_documents_by_their_own_name(tmp_path: Path) -> None:
    path = docx(tmp_path / "policy.docx", [("heading 1", "Travel"), ("", "By train.")])
    data = read(path, keep=("title", "document"))
    assert data[0] == {"text": "By train.", "title": "Travel", "document": "policy.docx"}
    assert read(put(tmp_path / "a.txt", WRAPPED)).place(0) == f"{tmp_path}/a.txt, passage 1"
    with pytest.raises(DataError, match="there are no rows"):
        read(pdf(tmp_path / "scan.pdf", [[]]))


def test_a_readme_beside_data_files_is_no_document(tmp_path: Path) -> None:
    put(tmp_path / "README.md", "# Data\n\nWhat it is.\n")
    put(tmp_path / "rows.csv", "question,answer\nq,a\n")
    data = read(tmp_path)
    assert (data.shape, data.unread) == (Shape.PAIRS, ((f"{tmp_path}/README.md", "about the data files beside it"),))
    (tmp_path / "rows.csv").unlink()
    assert read(tmp_path)["text"] == ["What it is."]


def test_a_folder_without_anything_to_read_says_what_is_there(tmp_path: Path) -> None:
    put(tmp_path / "a.jpg", "x")
    with pytest.raises(InputError, match=r"no documents or data files here \(.*a\.jpg: of the kind \.jpg\)"):
        read(tmp_path)


def test_the_same_folder_has_the_same_hash_wherever_it_is(messy: Path, tmp_path: Path) -> None:
    before = read(messy).sha256
    assert read(messy.rename(tmp_path / "moved")).sha256 == before
    put(tmp_path / "moved/notes.txt", "One sentence.\nAnother one.\n")
    assert read(tmp_path / "moved").sha256 != before


def test_a_file_that_takes_too_long_or_too_much_costs_that_file_only(tmp_path: Path) -> None:
    slow = put(tmp_path / "slow.md", "*a_ " * 200_000)
    large = put(tmp_path / "large.md", "word " * 300_000)
    files = [put(tmp_path / f"{name}.md", f"Text {name}.") for name in "ab"]
    answers = list(read_documents([files[0], slow, large, files[1]], limits=Limits(seconds=1, most_bytes=1_000_000)))
    assert [answer.get("why", "read") for answer in answers] == [
        "read",
        "takes more than 1 s",
        "more than 1,000,000 bytes",
        "read",
    ]


def test_a_reader_that_is_killed_is_replaced(tmp_path: Path) -> None:
    files = [put(tmp_path / f"{number}.md", f"Text {number}.") for number in range(60)]
    answers = read_documents(files)
    done = [next(answers)]
    own = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "documents/child.py"], capture_output=True, text=True)
    os.kill(int(own.stdout.split()[0]), signal.SIGKILL)
    done += answers
    assert len(done) == 60
    lost = [answer["why"] for answer in done if "why" in answer]
    assert lost in ([], ["its reader crashed"])


def test_readers_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    for number in range(400):
        put(tmp_path / f"{number}.md", f"Text {number}. " * 2000)
    process = subprocess.Popen([sys.executable, "-c", f"from sentloom import read; read({str(tmp_path)!r})"])
    children: list[str] = []
    while process.poll() is None and not children:
        time.sleep(0.05)
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_spreadsheets_among_documents_and_alone(tmp_path: Path) -> None:
    rows = [["Export of May"], [], ["Question", "Answer", "Team"], ["Who?", "=A1|We.", 3], ["How?", "So.", 2.5]]
    path = xlsx(tmp_path / "book.xlsx", First=rows, Second=[["text"], ["One."]])
    data = read(path, keep=["*"])
    assert [data[row] for row in range(2)] == [
        {"anchor": "Who?", "positive": "We.", "Team": "3"},
        {"anchor": "How?", "positive": "So.", "Team": "2.5"},
    ]
    assert data.place(0) == f"{path}, row 4"
    assert any("the header is in row 3" in note for note in data.notes)
    assert read(path, sheet="Second")["text"] == read(path, sheet="2")["text"] == ["One."]
    notes = xlsx(tmp_path / "notes.xlsx", Notes=[["Please read this."]], FAQ=rows)
    assert read(notes)["anchor"] == ["Who?", "How?"], "the first sheet with rows below a header"
    cover = xlsx(tmp_path / "cover.xlsx", Cover=[["The FAQ"], ["Please read this."]], FAQ=rows)
    with pytest.raises(InputError, match="Name another sheet with sheet: FAQ"):
        read(cover)
    with pytest.raises(InputError, match=r"there is no sheet 'Third'. Expected one of First, Second"):
        read(path, sheet="Third")
    with pytest.raises(DataError, match="the spreadsheet cannot be read"):
        read(put(tmp_path / "broken.xlsx", b"PK\x03\x04"))


def test_how_a_file_would_be_read_is_not_said_of_one_that_is_not(tmp_path: Path) -> None:
    put(tmp_path / "a.md", "# Title\n\nA paragraph of the document.\n")
    put(tmp_path / "faq.csv", "question;answer\nq;a\n")
    data = read(tmp_path)
    assert data.notes == ()
    assert [why for _, why in data.unread] == ["with pairs instead of texts (by its own name it is read)"]
