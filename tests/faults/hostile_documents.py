"""Fifty hostile documents: what each is, and why it is not read; "read" if something harmless is read from it."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.data.documents.office import LINKS, OFFICE, SHEETS, WORD, docx, pdf, xlsx

SECONDS, MEMORY, MOST_BYTES = 10, 500_000_000, 20_000_000  # for a document
TIME, ROOM, DAMAGED = "takes more than 10 s", "too much memory|crashed", "damaged"
ZEROS = bytes(300_000_000)
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
ENTITIES = f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY l0 "lol">{LAUGHS}]>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'


class Hostile(NamedTuple):
    """A file: what it is, its name, how it is made, and why it is not read, or "read"."""

    what: str
    name: str
    make: Callable[[Path], object]
    why: str


def raw(content: bytes | str | Callable[[], bytes]) -> Callable[[Path], object]:
    def make(path: Path) -> object:
        data = content() if callable(content) else content
        return path.write_bytes(data.encode() if isinstance(data, str) else data)

    return make


def zipped(*members: tuple[str, bytes | str]) -> Callable[[], bytes]:
    def make() -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return file.getvalue()

    return make


def word(body: str, head: str = "", **parts: str) -> Callable[[], bytes]:
    """A document with this XML as its body."""
    first = f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    document = f'{head}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    members = [
        ("_rels/.rels", f'<Relationships xmlns="{LINKS}">{first}</Relationships>'),
        ("word/document.xml", document),
    ]
    return zipped(*members, *parts.items())


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def sheet(body: str, head: str = "") -> Callable[[], bytes]:
    """A workbook with this XML in its only sheet."""
    first = f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    own = f'<Relationship Id="rId1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    book = f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>'
    return zipped(
        ("_rels/.rels", f'<Relationships xmlns="{LINKS}">{first}</Relationships>'),
        ("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{LINKS}">{own}</Relationships>'),
        ("xl/workbook.xml", book),
        ("xl/worksheets/sheet1.xml", f'{head}<worksheet xmlns="{SHEETS}"><sheetData>{body}</sheetData></worksheet>'),
    )


def drawn(stream: bytes, filters: str = "", pages: str = "[3 0 R]", more: str = "") -> bytes:
    """A PDF file of one page with this content, without a table of its objects, which readers then look for."""
    return (
        b"%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n"
        + f"2 0 obj << /Type /Pages /Kids {pages} /Count 1 >> endobj\n".encode()
        + b"3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        + b"/Resources << /Font << /F1 5 0 R >> >> >> endobj\n"
        + f"4 0 obj << /Length {len(stream)} {filters} >> stream\n".encode()
        + stream
        + f"\nendstream endobj\n5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica {more} >> endobj\n".encode()
        + b"trailer << /Root 1 0 R >>\n%%EOF\n"
    )


def whole_pdf(path: Path, change: Callable[[bytes], bytes]) -> object:
    return path.write_bytes(change(pdf(path, [[(12, "A line of text.")] * 20]).read_bytes()))


FLATE = "/Filter /FlateDecode"
TEXT = b"BT /F1 12 Tf 50 700 Td (Some text) Tj ET\n"
CASES = [
    Hostile("a table 5,000 deep", "deep.html", raw("<table><tr><td>" * 5_000 + "x"), "read"),
    Hostile("500,000 open tags", "open.html", raw("<b>" * 500_000 + "x"), "read"),
    Hostile("a million attributes", "attributes.html", raw("<p " + "a=1 " * 1_000_000 + ">x"), "read"),
    Hostile("an attribute of 15 MB", "attribute.html", raw(f"<p class='{'x' * 15_000_000}'>x"), "read"),
    Hostile("a script that never ends", "script.html", raw("<script>" + "while(1);" * 100_000), "without text"),
    Hostile("a comment that never ends", "comment.html", raw("<p>x<!--" + "-" * 1_000_000), "read"),
    Hostile("a million entities", "entities.html", raw("&amp;" * 1_000_000 + "x"), f"read|{TIME}"),
    Hostile("a base that leads elsewhere", "base.html", raw("<base href='file:///etc/'><a href='passwd'>the passwords</a>"), "read"),
    Hostile("a frame and a refresh", "frame.html", raw("<meta http-equiv=refresh content='0;url=//x'><iframe src='file:///etc/passwd'>"), "without text"),
    Hostile("NUL in a page", "nul.html", raw(b"<p>a\0b"), "binary"),
    Hostile("a picture called .html", "picture.html", raw(b"\x89PNG\r\n\x1a\n" + bytes(1000)), "binary"),
    Hostile("UTF-16 cut in a character", "half.html", raw(b"\xff\xfe" + "<p>text".encode("utf-16-le")[:-1]), "read"),
    Hostile("a page of 21 MB", "large.html", raw(lambda: b"<p>word " * 2_700_000), "more than 20,000,000 bytes"),
    Hostile("a million paragraphs", "paragraphs.html", raw("<p>x" * 1_000_000), f"read|{TIME}"),
    Hostile("nothing but a head", "head.html", raw("<title>x</title>"), "without text"),
    Hostile("brackets 20,000 deep", "brackets.md", raw("[" * 20_000 + "]" * 20_000), "read"),
    Hostile("quotes 20,000 deep", "quotes.md", raw(">" * 20_000 + " x"), "without text"),
    Hostile("emphasis that never ends", "stars.md", raw("a **" * 40_000 + "b"), f"read|{TIME}"),
    Hostile("links that never end", "links.md", raw("[a](" * 40_000), f"read|{TIME}"),
    Hostile("lists 5,000 deep", "lists.md", raw("".join("  " * n + "- x\n" for n in range(1_000))), "read"),
    Hostile("YAML that multiplies", "facts.md", raw("---\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)) + "title: *j\n---\ntext"), "read"),
    Hostile("YAML that makes objects", "objects.md", raw("---\ntitle: !!python/object/apply:os.system ['touch owned']\n---\ntext"), "read"),
    Hostile("a gzip bomb", "bomb.md.gz", raw(lambda: gzip.compress(ZEROS)), "unpacks to more than"),
    Hostile("gzip in name alone", "name.txt.gz", raw("text"), DAMAGED),
    Hostile("gzip cut short", "cut.html.gz", raw(lambda: gzip.compress(b"<p>text" * 100)[:-9]), DAMAGED),
    Hostile("one line of 15 MB", "line.txt", raw("x" * 15_000_000), "read"),
    Hostile("form feeds alone", "feeds.txt", raw("\f" * 1_000_000), "without text"),
    Hostile("an empty file", "empty.md", raw(""), "without text"),
    Hostile("a PDF file of nothing", "empty.pdf", raw(""), DAMAGED),
    Hostile("a PDF file in name alone", "name.pdf", raw("<html>"), DAMAGED),
    Hostile("a PDF file cut in half", "half.pdf", lambda path: whole_pdf(path, lambda data: data[: len(data) // 2]), "damaged|without text"),
    Hostile("a PDF file without its table", "table.pdf", lambda path: whole_pdf(path, lambda data: data.replace(b"startxref", b"startwhat")), "read"),
    Hostile("a PDF stream bomb", "bomb.pdf", raw(lambda: drawn(zlib.compress(ZEROS, 9), FLATE)), f"{ROOM}|without text|{TIME}|{DAMAGED}"),
    Hostile("a PDF stream packed twice", "twice.pdf", raw(lambda: drawn(zlib.compress(zlib.compress(ZEROS, 9), 9), "/Filter [/FlateDecode /FlateDecode]")), f"{ROOM}|without text|{TIME}|{DAMAGED}"),
    Hostile("a PDF page of ten million letters", "letters.pdf", raw(lambda: drawn(zlib.compress(TEXT * 1_000_000, 9), FLATE)), f"{TIME}|{ROOM}"),
    Hostile("a PDF file whose pages contain themselves", "circle.pdf", raw(drawn(TEXT, pages="[2 0 R 3 0 R]")), "read"),
    Hostile("a PDF file of a billion pages", "pages.pdf", raw(drawn(TEXT).replace(b"/Count 1", b"/Count 1000000000")), "read"),
    Hostile("a PDF file that runs a script", "script.pdf", raw(drawn(TEXT).replace(b"/Type /Catalog", b"/Type /Catalog /OpenAction << /S /JavaScript /JS (while\\(1\\);) >>")), "read"),
    Hostile("a PDF file that starts a program", "launch.pdf", raw(drawn(TEXT).replace(b"/Type /Catalog", b"/Type /Catalog /OpenAction << /S /Launch /F (touch owned) >>")), "read"),
    Hostile("an encrypted PDF file", "locked.pdf", lambda path: whole_pdf(path, lambda data: data.replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt << /Filter /Standard /V 1 /R 2 /O (x) /U (y) /P -4 >>")), f"encrypted|{DAMAGED}"),
    Hostile("a Word file of nothing", "empty.docx", raw(""), DAMAGED),
    Hostile("a Word file in name alone", "name.docx", raw("text"), DAMAGED),
    Hostile("an old Word file", "old.docx", raw(b"\xd0\xcf\x11\xe0" + bytes(600)), "old versions of Word"),
    Hostile("a Word file without a document", "hollow.docx", raw(zipped(("a.txt", "x"))), DAMAGED),
    Hostile("a Word bomb", "bomb.docx", raw(zipped(("word/document.xml", ZEROS))), "unpacks to more than"),
    Hostile("a Word bomb that states a small size", "liar.docx", raw(lambda: lying(zipped(("word/document.xml", ZEROS))())), f"{DAMAGED}|{ROOM}"),
    Hostile("a billion laughs", "laughs.docx", raw(word(paragraph("&l9;"), ENTITIES)), f"{DAMAGED}|{ROOM}|{TIME}"),
    Hostile("a Word file that includes a file", "include.docx", raw(word(paragraph("a &secret; b"), OUTSIDE)), "read"),
    Hostile("tables 2,000 deep in Word", "deep.docx", raw(word("<w:tbl><w:tr><w:tc>" * 2_000 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 2_000)), f"{DAMAGED}|crashed"),
    Hostile("a Word file of 300,000 paragraphs", "long.docx", raw(word(paragraph("x") * 300_000)), f"read|{TIME}|{ROOM}"),
    Hostile("a damaged Word file", "flipped.docx", lambda path: path.write_bytes(bytes(byte ^ (at % 97 == 0) for at, byte in enumerate(docx(path, [("", "text " * 500)]).read_bytes()))), DAMAGED),
]  # fmt: skip

SHEET_CASES = [
    Hostile("a spreadsheet of nothing", "empty.xlsx", raw(""), "cannot be read"),
    Hostile("a spreadsheet in name alone", "name.xlsx", raw("text,id\na,b\n"), "cannot be read"),
    Hostile("a spreadsheet cut short", "cut.xlsx", lambda path: path.write_bytes(xlsx(path, a=[["text"], ["x"]]).read_bytes()[:-80]), "cannot be read"),
    Hostile("a cell in the last row and column", "far.xlsx", raw(sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')), "cannot be read"),
    Hostile("a spreadsheet of laughs", "laughs.xlsx", raw(sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>&l9;</t></is></c></row>', ENTITIES)), "cannot be read|without a column|empty"),
    Hostile("a spreadsheet bomb", "bomb.xlsx", raw(lambda: sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>' + "x" * 200_000_000 + "</t></is></c></row>")()), "cannot be read|200,000,000 characters"),
]  # fmt: skip


def lying(content: bytes) -> bytes:
    """A zip file whose headers say that its only member has a hundred bytes."""
    data, size = bytearray(content), (100).to_bytes(4, "little")
    central = data.index(b"PK\x01\x02")
    data[central + 24 : central + 28] = size
    data[22:26] = size
    return bytes(data)
