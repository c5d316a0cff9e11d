"""PDF, page by page: lines of larger letters are headings, running titles and page numbers are left out."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from sentloom.data.documents.document import Block, Document, Unreadable, titled
from sentloom.data.documents.plain import ENDS, joined, without_edges

LARGER = 1.15  # times the size of most letters: a heading
MOST_HEADING = 120  # characters
SHORT = 0.8  # of the longest lines: a line that ends a paragraph
LEVELS = 6
HYPHEN = "\ufffe"  # with which a word was divided
MOST_PAGES = 20_000


class Line(NamedTuple):
    """A line of text on a page."""

    text: str
    size: float  # of its first letter


def read_pdf(content: bytes) -> Document:
    """Read the text layer of a PDF file; scanned pages have none."""
    import pypdfium2
    from pypdfium2 import PdfiumError

    try:
        file = pypdfium2.PdfDocument(content)
    except PdfiumError as error:
        raise Unreadable("encrypted" if "assword" in str(error) else "damaged") from None
    try:
        if len(file) > MOST_PAGES:
            raise Unreadable(f"more than {MOST_PAGES:,} pages")
        pages = [[*_lines(file, number)] for number in range(len(file))]
        title = str(file.get_metadata_dict().get("Title", "")).strip()
    except PdfiumError:
        raise Unreadable("damaged") from None
    finally:
        file.close()
    return titled(title, _blocks(_without_running_titles(pages)))


def _lines(file: Any, number: int) -> Iterator[Line]:
    from pypdfium2 import raw

    page = file[number]
    text_page = page.get_textpage()
    try:
        at = 0
        for text in text_page.get_text_range().split("\n"):
            start = at + len(text) - len(text.lstrip())
            if stripped := text.strip():
                yield Line(stripped.replace(HYPHEN, ""), round(raw.FPDFText_GetFontSize(text_page.raw, start), 1))
            at += len(text) + 1
    finally:
        text_page.close()
        page.close()


def _without_running_titles(pages: list[list[Line]]) -> list[list[Line]]:
    texts = without_edges([[line.text for line in page] for page in pages])
    kept = []
    for page, own in zip(pages, texts, strict=True):
        start = next((at for at in range(len(page)) if [line.text for line in page[at : at + len(own)]] == own), 0)
        kept.append(page[start : start + len(own)])
    return kept


def _blocks(pages: list[list[Line]]) -> list[Block]:
    letters = Counter[float]()
    for line in (line for page in pages for line in page):
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 0.0
    larger = sorted((size for size in letters if size > LARGER * body), reverse=True)
    levels = {size: min(level, LEVELS) for level, size in enumerate(larger, 1)}
    return [block for number, page in enumerate(pages, 1) for block in _of_page(page, number, levels)]


def _of_page(page: list[Line], number: int, levels: dict[float, int]) -> Iterator[Block]:
    widest = max((len(line.text) for line in page), default=0)
    lines: list[str] = []
    for at, line in enumerate(page):
        level = levels.get(line.size, 0) if len(line.text) <= MOST_HEADING else 0
        after = page[at + 1] if at + 1 < len(page) else None
        goes_on = after is not None and levels.get(after.size, 0) == level
        lines.append(line.text)
        ends = not level and ENDS.search(line.text) is not None and len(line.text) < SHORT * widest
        if ends or not goes_on:
            yield Block(joined(lines), level, number)
            lines = []
