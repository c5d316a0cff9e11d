"""A fit of a folder of documents: its structure gives the pairs that decide, among all passages."""

import re
from pathlib import Path

import pytest

from tests.data.documents.office import pdf
from tests.fitting import small_base


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """150 documents with a title and two sections, and two files that are not read."""
    folder = tmp_path / "docs"
    (folder / "old").mkdir(parents=True)
    texts = iter(small_base.sentences(600, 17))
    for number in range(150):
        title, first, second, more = (next(texts) for _ in range(4))
        body = f"Intro {number}: {small_base.other(title)} {small_base.other(title)}"
        sections = (
            f"## {text}\n\nIt says {small_base.other(text)}, {number} times, {more}.\n" for text in (first, second)
        )
        file = folder / f"old/{number}.md" if number % 2 else folder / f"{number}.md"
        file.write_text(f"# {title}\n\n{body}\n\n{''.join(sections)}", "utf-8")
    pdf(folder / "scan.pdf", [[]])
    (folder / "logo.png").write_bytes(b"\x89PNG")
    return folder


def test_documents_alone_are_judged_by_their_titles_and_headings(run, folder: Path, tmp_path: Path) -> None:
    done, result, _ = run(folder, budget="10steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    output = " ".join(done.stdout.split())
    assert "152 files: 150 read, 2 not read: 1 of the kind .png, 1 without text" in output
    assert output.count(" files") == 1
    assert f"{folder}: 450 passages" in output
    assert f"{folder}: titles, headings and links: 450 pairs (heading, passage)" in output
    assert "on titles and headings of your documents" in output
    for source in result.sources:
        counts = source.rows
        used = counts.train + counts.validation + counts.test
        assert counts.read == 450 == used + sum(counts.left_out.values())
    assert result.total.of_documents == 450, "all passages are searched, not only those that a heading leads to"
    assert re.search(r"spans|simcse", " ".join(route.name for route in result.routes))
