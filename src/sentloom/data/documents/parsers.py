"""The bytes of one file as a document, by the format that its name says."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sentloom.data.documents.document import Block, Document, Unreadable
from sentloom.data.documents.plain import is_wrapped, read_plain
from sentloom.data.encodings import decoded, marked

PACKAGES = {"pdf": "pypdfium2", "docx": "mammoth"}  # of the extra `documents`, by format
TEXT_FORMATS = {
    "txt": "txt",
    "text": "txt",
    "md": "md",
    "markdown": "md",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
}
FORMATS = {**TEXT_FORMATS, "pdf": "pdf", "docx": "docx"}
MOST_UNPACKED = 200_000_000  # bytes of a file in memory
LONGEST_FACTS = 65_536  # characters of what a Markdown file says about itself before its text
HEAD = 1 << 16  # bytes that show what a text is
RULE = "---"
TITLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def format_of(name: str) -> str | None:
    """The format of a document by its name, also of one that is packed; None for other files."""
    stem, _, ending = name.lower().rpartition(".")
    if ending == "gz":
        return TEXT_FORMATS.get(stem.rpartition(".")[2])
    return FORMATS.get(ending) if stem else None


def head_of(path: Path) -> str:
    """The first characters of a text file, also of one that is packed; nothing if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(HEAD)
        if path.suffix.lower() == ".gz":
            content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, HEAD)
    except (OSError, zlib.error):
        return ""
    return content.decode(marked(content) or "utf-8", "replace")  # a character may be cut at the end


def missing_package(form: str) -> str | None:
    """The package that reads a format, if it is not installed."""
    package = PACKAGES.get(form)
    return package if package and find_spec(package) is None else None


def parse(name: str, content: bytes, encoding: str | None = None) -> Document:
    """Read a document; `Unreadable` says why not."""
    form = format_of(name)
    if form is None:
        raise Unreadable("not a document")
    if name.lower().endswith(".gz"):
        content = _unpacked(content)
    if form not in TEXT_FORMATS.values():
        return BINARY[form](content)
    text = decoded(content, encoding, is_html=form == "html").replace("\r\n", "\n")
    if "\0" in text:
        raise Unreadable("binary")
    return TEXT[form](text)


def _unpacked(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(MOST_UNPACKED + 1)
    except (EOFError, OSError, zlib.error):
        raise Unreadable("damaged") from None
    if len(unpacked) > MOST_UNPACKED:
        raise Unreadable(f"unpacks to more than {MOST_UNPACKED:,} bytes")
    return unpacked


def _html(text: str) -> Document:
    from sentloom.data.documents.html import read_html

    return read_html(text)


def _markdown(text: str) -> Document:
    """Markdown may contain HTML: it is read as what a browser would show."""
    from markdown_it import MarkdownIt

    facts, text = _facts(text)
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    document = _html(parser.render(text))
    title = facts.get("title") if isinstance(facts, dict) else None
    return document._replace(title=title.strip()) if isinstance(title, str) and title.strip() else document


def _facts(text: str) -> tuple[Any, str]:
    """What YAML at the start of a Markdown file says, and the text after it."""
    import yaml

    if not text.startswith(f"{RULE}\n"):
        return None, text
    head, rule, rest = text[len(RULE) :].partition(f"\n{RULE}\n")
    if not rule or len(head) > LONGEST_FACTS:
        return None, text
    try:
        return yaml.safe_load(head), rest
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, rest


def _plain(text: str) -> Document:
    if is_wrapped(text):
        return read_plain(text)
    return Document("", tuple(Block(line.strip()) for line in text.split("\n") if line.strip()), apart=True)


def _pdf(content: bytes) -> Document:
    from sentloom.data.documents.pdf import read_pdf

    return read_pdf(content)


def _docx(content: bytes) -> Document:
    import mammoth

    _check_unpacked(content)
    options = {"style_map": TITLES, "convert_image": mammoth.images.img_element(lambda image: {"src": ""})}
    return _html(mammoth.convert_to_html(io.BytesIO(content), **options).value)


def _check_unpacked(content: bytes) -> None:
    """Refuse a zip file whose members say that they are too large, or that is encrypted or none."""
    try:
        members = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, OSError, ValueError):
        is_old = content.startswith(b"\xd0\xcf\x11\xe0")
        raise Unreadable("encrypted, or in the format of old versions of Word" if is_old else "damaged") from None
    if sum(member.file_size for member in members) > MOST_UNPACKED:
        raise Unreadable(f"unpacks to more than {MOST_UNPACKED:,} bytes")


TEXT: dict[str, Callable[[str], Document]] = {"txt": _plain, "md": _markdown, "html": _html}
BINARY: dict[str, Callable[[bytes], Document]] = {"pdf": _pdf, "docx": _docx}
