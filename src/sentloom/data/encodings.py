"""Detect files that are not UTF-8: UTF-16 by its byte order mark, Windows-1252 if every line is plausible in it."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

BYTE_ORDER_MARKS = {  # the longer ones first: the UTF-16 mark is a prefix of the UTF-32 mark
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
WESTERN = "cp1252"


class Foreign(NamedTuple):
    """A format that is not text, and what to do with such a file."""

    name: str
    fix: str


EXPORT = "open it in the spreadsheet program and save it as CSV (UTF-8)"
FOREIGN = {  # by the first bytes
    b"PK\x03\x04": Foreign("a spreadsheet (.xlsx, .ods) or a zip file", f"{EXPORT}; unpack a zip file first"),
    b"\xd0\xcf\x11\xe0": Foreign("an old spreadsheet (.xls)", EXPORT),
    b"\x1f\x8b": Foreign("gzip data", "rename the file to end in .gz"),
    b"PAR1": Foreign("parquet data", "rename the file to end in .parquet"),
}
# Codes that are letters in Windows-1250 (Polish) and others: inside a word they show that a text is not Western.
SIGNS_IN_WORDS = re.compile(r"(?<=[^\W\d_])[¡¢£¤¥¦¨©ª«¬®¯±²³µ¶¸¹º»¼½¾¿×÷](?=[^\W\d_])")
MOST_ACCENTED = 1 / 3  # share of the letters; in Greek or Cyrillic nearly all are beyond ASCII


def foreign_format(block: bytes) -> Foreign | None:
    """Recognise a format other than text by the first bytes of a file."""
    return next((foreign for start, foreign in FOREIGN.items() if block.startswith(start)), None)


def mark_of(block: bytes) -> str | None:
    """Return the encoding named by the byte order mark at the start of a file, unless it is UTF-8."""
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if block.startswith(mark)), None)


def as_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Convert blocks of another encoding to UTF-8; undecodable bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in chain(blocks, [b""]):
        yield decoder.decode(block, final=not block).encode()


def is_western(lines: Iterable[bytes]) -> bool:
    """Whether all lines that are not UTF-8 are plausible as Windows-1252."""
    return all(_reads_well(line) for line in lines if not _is_utf8(line))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _reads_well(line: bytes) -> bool:
    try:
        text = line.decode(WESTERN)
    except UnicodeDecodeError:  # five bytes are undefined in it
        return False
    letters = [letter for letter in text if letter.isalpha()]
    accented = sum(letter > "\x7f" for letter in letters)
    return accented <= MOST_ACCENTED * len(letters) and not SIGNS_IN_WORDS.search(text)
