"""Files that are not UTF-8: UTF-16 by its byte order mark, and Windows-1252 where every line reads well in it."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

BYTE_ORDER_MARKS = {  # the longer ones first: that of UTF-16 begins that of UTF-32
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
WESTERN = "cp1252"


class Foreign(NamedTuple):
    """A format that is not text, and what to do about a file in it."""

    name: str
    fix: str


EXPORT = "open it in the spreadsheet program and save it as CSV (UTF-8)"
FOREIGN = {  # by the first bytes
    b"PK\x03\x04": Foreign("a spreadsheet (.xlsx, .ods) or a zip file", f"{EXPORT}; a zip file must be unpacked"),
    b"\xd0\xcf\x11\xe0": Foreign("an old spreadsheet (.xls)", EXPORT),
    b"\x1f\x8b": Foreign("gzip data", "give the file's name the ending .gz"),
    b"PAR1": Foreign("parquet data", "give the file's name the ending .parquet"),
}
# Signs that Polish (Windows-1250) and others have as letters: within a word they show that a text is not Western.
SIGNS_IN_WORDS = re.compile(r"(?<=[^\W\d_])[¡¢£¤¥¦¨©ª«¬®¯±²³µ¶¸¹º»¼½¾¿×÷](?=[^\W\d_])")
MOST_ACCENTED = 1 / 3  # of the letters: in Greek or Cyrillic nearly all are above ASCII


def foreign_format(block: bytes) -> Foreign | None:
    """The format other than text that a file is in, by its first bytes."""
    return next((foreign for start, foreign in FOREIGN.items() if block.startswith(start)), None)


def mark_of(block: bytes) -> str | None:
    """The encoding that the byte order mark at the start of a file names, but for UTF-8."""
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if block.startswith(mark)), None)


def as_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Blocks of another encoding as UTF-8; what cannot be decoded becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in chain(blocks, [b""]):
        yield decoder.decode(block, final=not block).encode()


def is_western(lines: Iterable[bytes]) -> bool:
    """Whether all lines that are not UTF-8 can only sensibly be Windows-1252."""
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
    except UnicodeDecodeError:  # five bytes mean nothing in it
        return False
    letters = [letter for letter in text if letter.isalpha()]
    accented = sum(letter > "\x7f" for letter in letters)
    return accented <= MOST_ACCENTED * len(letters) and not SIGNS_IN_WORDS.search(text)
