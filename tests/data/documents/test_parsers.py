"""Every format becomes headings and paragraphs; what is not text of the document is left out."""

import gzip

import pytest

from sentloom.data.documents.document import Block, Link, Unreadable
from sentloom.data.documents.parsers import format_of, parse
from sentloom.data.documents.plain import is_wrapped
from tests.data.documents.office import docx, pdf

PAGE = """<!doctype html><html><head><title>Login - Intranet</title><style>p {color: red}</style></head><body>
<nav><a href="index.html">Home</a></nav><header>The Company</header>
<main><h1>Logging in<a class="headerlink" href="#x">¶</a></h1>
<p>Use your <b>company</b> <a href="password.html">password</a>.<script>alert("no")</script></p>
<h2>When it fails</h2><ul><li>Reset it.</li><li>Call us.</li></ul>
<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Monday</td><td>9 to 5</td></tr></table>
<pre>ssh host
exit</pre><div hidden>secret</div></main><footer>Imprint</footer></body></html>"""


def blocks(name: str, content: bytes | str) -> list[tuple[int, str]]:
    raw = content.encode() if isinstance(content, str) else content
    return [(block.level, block.text) for block in parse(name, raw).blocks]


def test_html_without_menus_and_scripts() -> None:
    document = parse("a.html", PAGE.encode())
    assert document.title == "Logging in"
    assert document.blocks[0] == Block("Use your company password.", 0, 0, (Link("password", "password.html"),))
    assert [(block.level, block.text) for block in document.blocks[1:]] == [
        (2, "When it fails"),
        (0, "Reset it."),
        (0, "Call us."),
        (0, "Day | Hours"),
        (0, "Monday | 9 to 5"),
        (0, "ssh host\nexit"),
    ]


def test_html_that_is_no_page_and_html_in_another_encoding() -> None:
    assert blocks("a.htm", "just a <b>text") == [(0, "just a text")]
    page = '<meta charset="windows-1251"><p>Привет, как дела?'
    assert blocks("a.html", page.encode("cp1251")) == [(0, "Привет, как дела?")]
    assert blocks("a.html", "<p>größer".encode("utf-16")) == [(0, "größer")]


def test_a_title_is_the_only_highest_heading_or_that_of_the_page() -> None:
    two = "<title>Handbook</title><h1>One</h1><p>a</p><h1>Two</h1><p>b</p>"
    assert parse("a.html", two.encode()).title == "Handbook"
    assert blocks("a.html", two) == [(1, "One"), (0, "a"), (1, "Two"), (0, "b")]


def test_markdown_with_front_matter_headings_code_and_html() -> None:
    text = "---\ntitle: Access\ntags: [a]\n---\n# Access cards\n\nLost *yours*? See [the desk](desk.md).\n\n"
    text += "## New cards ##\n\n```sh\nmake card\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<h3 align=center>Costs</h3>\n\nNone."
    document = parse("a.md", text.encode())
    assert document.title == "Access"
    assert document.blocks[0].links == (Link("the desk", "desk.md"),)
    assert [(block.level, block.text) for block in document.blocks] == [
        (0, "Lost yours? See the desk."),
        (2, "New cards"),
        (0, "make card"),
        (0, "a | b"),
        (0, "1 | 2"),
        (3, "Costs"),
        (0, "None."),
    ]


def test_docx_with_title_headings_and_lists(tmp_path) -> None:
    path = docx(
        tmp_path / "a.docx",
        [("Title", "Travel policy"), ("", "Book early."), ("heading 1", "Trains"), ("", "Second class.")],
    )
    document = parse(path.name, path.read_bytes())
    assert document.title == "Travel policy" or document.blocks[0].text == "Travel policy"
    assert [(block.level, block.text) for block in document.blocks][-3:] == [
        (0, "Book early."),
        (1, "Trains"),
        (0, "Second class."),
    ]


def test_pdf_page_by_page_with_headings_by_size_and_without_running_titles(tmp_path) -> None:
    def page(number: int, heading: str, text: list[str]) -> list[tuple[int, str]]:
        lines = [(12, line) for line in text]
        return [(12, "The Company Handbook"), (20, heading), *lines, (12, f"Page {number} of 3")]

    path = pdf(
        tmp_path / "a.pdf",
        [
            page(
                1,
                "Holidays",
                ["Everyone has thirty days of holi-", "day a year, and may carry five of them over.", "Ask early."],
            ),
            page(2, "Sick leave", ["Call before nine."]),
            page(3, "Expenses", ["Keep the receipts."]),
        ],
        title="Handbook",
    )
    document = parse(path.name, path.read_bytes())
    assert document.title == "Handbook"
    assert [block[:3] for block in document.blocks] == [
        ("Holidays", 1, 1),
        ("Everyone has thirty days of holiday a year, and may carry five of them over. Ask early.", 0, 1),
        ("Sick leave", 1, 2),
        ("Call before nine.", 0, 2),
        ("Expenses", 1, 3),
        ("Keep the receipts.", 0, 3),
    ]


RFC = """Network Working Group                                      J. Doe
Request for Comments: 1                                April 1990

1.  Introduction

   This document describes a protocol that nobody uses, and it is
   wrapped at a width of some seventy characters, as documents of
   its kind are.

2.  Terms

2.1.  Octet

   An octet is a byte of eight bits, which in those days was worth
   saying in a document.
"""


def test_wrapped_text_is_a_document_with_headings() -> None:
    assert is_wrapped(RFC)
    assert blocks("rfc1.txt", RFC)[1:] == [
        (1, "1. Introduction"),
        (
            0,
            "This document describes a protocol that nobody uses, and it is wrapped at a width of some seventy "
            "characters, as documents of its kind are.",
        ),
        (1, "2. Terms"),
        (2, "2.1. Octet"),
        (0, "An octet is a byte of eight bits, which in those days was worth saying in a document."),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["A sentence.", "Another one.", "A third one.", "", "Of the next document.", "Its end."],
        ["a sentence without a full stop"] * 9,
        ["how do i reset it", "no vpn", "", "the printer says that it is offline since last monday", "who is my boss"]
        * 9,
        ["x" * 200, "y" * 300, "", "z" * 200, "w" * 400, "", "v" * 300],
    ],
)
def test_lines_of_sentences_stay_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert not is_wrapped(text)
    assert [line for _, line in blocks("a.txt", text)] == [line for line in lines if line]


def test_pages_of_text_lose_their_running_titles() -> None:
    words = ("one", "two", "three", "four", "five")
    page = "Doe            RFC 1            April 1990\n\n   The line of page {1} that goes on\n   to {1} lines.\n\nDoe   [Page {0}]\n"
    text = "\f".join(page.format(number, word) for number, word in enumerate(words, 1))
    assert [text for _, text in blocks("a.txt", text)] == [
        f"The line of page {word} that goes on to {word} lines." for word in words
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.pdf", b"%PDF-1.4 broken", "damaged"),
        ("a.docx", b"PK\x03\x04 broken", "damaged"),
        ("a.docx", b"\xd0\xcf\x11\xe0", "encrypted"),
        ("a.md", b"a\0b", "binary"),
        ("a.md.gz", b"\x1f\x8b broken", "damaged"),
        ("a.md.gz", gzip.compress(bytes(300_000_000)), "unpacks to more than"),
    ],
)
def test_files_that_cannot_be_read_say_why(name: str, content: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse(name, content)


def test_formats_are_known_by_name() -> None:
    assert [format_of(name) for name in ("a.MD", "b.html.gz", "c.docx", "d.csv", "md", "e.pdf.gz")] == [
        "md",
        "html",
        "docx",
        None,
        None,
        None,
    ]


def test_headings_of_text_are_the_lines_that_are_underlined() -> None:
    body = "The text below a heading, which is wrapped at\nsome width that is less than that of the page.\n"
    text = f"=====\nCache\n=====\n\n{body}\nSetting up\n==========\n\n{body}\nMemory\n------\n\n{body}"
    document = parse("cache.txt", text.encode())
    assert document.title == "Cache"
    assert [(block.level, block.text) for block in document.blocks if block.level] == [(2, "Setting up"), (3, "Memory")]
