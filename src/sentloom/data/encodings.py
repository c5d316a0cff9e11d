"""The encoding of a text: what it says itself, UTF-8 if it can be that, or what it is recognised as."""

import codecs
import re
from collections.abc import Iterable

from sentloom.errors import InputError, option

BYTE_ORDER_MARKS = {  # the longer ones first: the UTF-16 mark is a prefix of the UTF-32 mark
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
WESTERN, SHOWN_WESTERN = "cp1252", "Windows-1252"
# Codes that are letters in Windows-1250 (Polish) and others: inside a word they show that a text is not Western.
SIGNS_IN_WORDS = re.compile(r"(?<=[^\W\d_])[¡¢£¤¥¦¨©ª«¬®¯±²³µ¶¸¹º»¼½¾¿×÷](?=[^\W\d_])")
DAMAGE = "ÿ"  # all bits set: rarely a letter
MOST_ACCENTED = 1 / 3  # share of the letters; in Greek or Cyrillic nearly all are beyond ASCII
# What files are in, if not in UTF-8 or Windows-1252: relatives that no program writes would be taken for these.
COMMON = (
    *(f"cp125{number}" for number in (0, 1, 3, 4, 5, 6, 7, 8)),
    *("koi8_r", "iso8859_2", "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949"),
)
LEAST_EVIDENCE = 100  # bytes beyond ASCII: fewer do not tell one encoding from another
SAMPLE = 100_000  # bytes of lines from which an encoding is recognised
LEAST_WIDE = 10  # characters of UTF-16 without a byte order mark
STATED = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w:-]+)", re.IGNORECASE)
LOOKED_AT = 1024  # bytes of a page in which it may state its encoding, or of a text that may be UTF-16


def known(encoding: str) -> str:
    """An encoding by the name that Python knows it by; others are refused."""
    try:
        info = codecs.lookup(encoding)
        "".encode(info.name).decode(info.name)  # some codecs convert no text
    except (LookupError, TypeError, ValueError):
        expected = "utf-8, utf-16, windows-1252, latin-1, shift_jis, gb18030 ..."
        raise InputError(option("encoding"), f"{encoding!r} is no encoding", expected, "correct the name") from None
    return info.name


def shown_name(encoding: str) -> str:
    """An encoding as people call it."""
    return SHOWN_WESTERN if encoding == WESTERN else encoding.replace("_", "-")


def encoding_of(lines: Iterable[bytes]) -> str | None:
    """The encoding of all lines that are not UTF-8; None if nothing fits, or too little is there to tell."""
    western, has_utf8, sample, others = True, False, bytearray(), list[bytes]()
    for line in lines:
        if line.isascii():
            continue
        if _is_utf8(line):
            has_utf8 = True
            continue
        western = western and _reads_well(line)
        if len(sample) < SAMPLE:
            sample += line + b"\n"
            others.append(line)
    if western:
        return WESTERN
    return None if has_utf8 else _recognised(bytes(sample))


def _recognised(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    if sum(byte > 0x7F for byte in sample) < LEAST_EVIDENCE:
        return None
    best = from_bytes(sample, cp_isolation=[*COMMON]).best()
    return None if best is None or _decodes(sample, best.encoding) is None else best.encoding


def _decodes(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def is_western(lines: Iterable[bytes]) -> bool:
    """Whether all lines that are not UTF-8 are plausible as Windows-1252."""
    return all(_reads_well(line) for line in lines if not _is_utf8(line))


def _is_utf8(line: bytes) -> bool:
    return _decodes(line, "utf-8") is not None


def _reads_well(line: bytes) -> bool:
    text = _decodes(line, WESTERN)
    if text is None or DAMAGE in text:  # five bytes are undefined in it
        return False
    letters = [letter for letter in text if letter.isalpha()]
    accented = sum(letter > "\x7f" for letter in letters)
    return accented <= MOST_ACCENTED * len(letters) and not SIGNS_IN_WORDS.search(text)


def marked(content: bytes) -> str | None:
    """The encoding that a byte order mark states, or UTF-16 without one."""
    stated = next((name for mark, name in BYTE_ORDER_MARKS.items() if content.startswith(mark)), None)
    return stated or without_mark(content)


def without_mark(content: bytes) -> str | None:
    """UTF-16 without a byte order mark, if a text looks like it: every second byte is mostly zero, and no other.

    >>> without_mark("Where is the canteen?".encode("utf-16-le"))
    'UTF-16-LE'
    """
    even, odd = content[:LOOKED_AT:2], content[1:LOOKED_AT:2]
    for zeros, others, name in ((odd, even, "UTF-16-LE"), (even, odd, "UTF-16-BE")):
        if len(zeros) >= LEAST_WIDE and 2 * zeros.count(0) > len(zeros) and 0 not in others:
            return name
    return None


def decoded(content: bytes, encoding: str | None = None, *, is_html: bool = False) -> str:
    """The text of a whole file; what cannot be decoded becomes U+FFFD."""
    if name := encoding or marked(content):
        return content.decode(name, "replace").removeprefix("\ufeff")
    stated = STATED.search(content[:LOOKED_AT]) if is_html else None
    for name in (stated[1].decode("ascii"), "utf-8") if stated else ("utf-8",):
        if (text := _decodes(content, name)) is not None:
            return text
    return content.decode(encoding_of(content.split(b"\n")) or WESTERN, "replace")
