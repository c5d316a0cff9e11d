"""Turn bytes into lines of text: one pass hashes, unpacks, decodes and splits a file, and locates problems by line.

The file is processed in blocks of whole lines; only a block with a problem is processed line by line.
"""

import codecs
import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import IO, Any, NamedTuple

from sentloom.data.dataset import BLANK_LINES
from sentloom.data.encodings import BYTE_ORDER_MARKS, encoding_of, shown_name, without_mark
from sentloom.data.findings import Findings
from sentloom.data.inputs import File
from sentloom.data.limits import CLEANING, ENDLESS, packed_room
from sentloom.errors import DataError, option

Block = tuple[int, str]  # the number of the first line, and whole lines of text
Records = tuple[Sequence[int], list[Any]]  # the line at which each record starts, and the records

LOOK = 1 << 16  # bytes to search for a line feed
GZIP_SIZE = 4  # bytes at the end of a gzip file that state its unpacked size
MOST_DEFLATED = 1032  # the highest compression ratio of deflate
HALF_BLANK = "lines that are blank on one side"
OTHER_ENCODING = "the file is not in UTF-8 but in an encoding that was not recognised; --encoding names it"


class Digest:
    """A running hash of the bytes read so far, and their number."""

    def __init__(self) -> None:
        self.size, self._hash = 0, hashlib.sha256()

    def update(self, block: bytes) -> None:
        """Add a block."""
        self.size += len(block)
        self._hash.update(block)

    def hexdigest(self) -> str:
        """Return the hash as hexadecimal digits."""
        return self._hash.hexdigest()


class _Hashed(io.RawIOBase):
    """A file that hashes everything read from it."""

    def __init__(self, file: IO[bytes], digest: Digest) -> None:
        self._file, self._digest = file, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        self._digest.update(block)
        return len(block)


def text_blocks(path: File, digest: Digest, findings: Findings, encoding: str | None = None) -> Iterator[Block]:
    """Yield the file as text, in blocks of whole lines.

    Lines that are not UTF-8 are read in the encoding that all of them seem to be in. If there is none, in strict mode
    undecodable bytes are reported and become U+FFFD; if unusable rows are tolerated, the bytes become surrogates, which
    make their row unusable.
    """
    other: str | None = None
    looked = encoding is not None
    blocks = _with_line_ends(_utf8(path, digest, findings, encoding), path, findings)
    for first, raw in _whole_lines(blocks, findings):
        block = raw.removeprefix(codecs.BOM_UTF8) if first == 1 else raw
        try:
            text = block.decode()
            valid = "\0" not in text
        except UnicodeDecodeError:
            valid = False
            if not looked:
                other, looked = _encoding_of_file(path), True
                _note_encoding(path, other, findings)
        if not valid:
            lines = enumerate(block.split(b"\n"), first)
            text = "\n".join([_decode_line(number, line, findings, other) for number, line in lines])
        yield first, text


def _note_encoding(path: File, encoding: str | None, findings: Findings) -> None:
    if encoding:
        name = shown_name(encoding)
        findings.notes.append(f"{path}: lines that are not UTF-8 are read as {name} ({option('encoding', 'NAME')})")


def text_chunks(path: File, digest: Digest, findings: Findings, encoding: str | None = None) -> Iterator[str]:
    """Yield the file as text in chunks that may end anywhere; invalid UTF-8 becomes surrogates, which cells reject."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
    for block in _utf8(path, digest, findings, encoding):
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def first_lines(path: File, encoding: str | None = None) -> Iterator[Block]:
    """Yield the file as text for detection: problems are not reported; an error ends the iteration."""
    with suppress(DataError):
        unreported = Findings(CLEANING)
        unreported.begin(str(path), "line")
        yield from text_blocks(path, Digest(), unreported, encoding)


def _utf8(path: File, digest: Digest, findings: Findings, encoding: str | None) -> Iterator[bytes]:
    """Yield the bytes of a file as UTF-8, converted if another encoding is asked for or named by a byte order mark."""
    blocks = raw_blocks(path, digest, findings)
    first = next(blocks, b"")
    if foreign := foreign_format(first):
        findings.stop(0, f"the file contains {foreign.name}", "a text file", foreign.fix)
    if encoding and codecs.lookup(encoding).name != "utf-8":
        yield from _as_asked(_all(first, blocks), encoding, findings)
    elif mark := mark_of(first):
        findings.notes.append(f"{path}: read as {mark}, as its byte order mark says")
        yield from as_utf8(_all(first, blocks), mark)
    elif wide := without_mark(first):
        findings.notes.append(
            f"{path}: read as {wide}, because every second byte is zero ({option('encoding', 'NAME')})"
        )
        yield from as_utf8(_all(first, blocks), wide)
    else:
        yield from _all(first, blocks)


def _as_asked(blocks: Iterable[bytes], encoding: str, findings: Findings) -> Iterator[bytes]:
    try:
        yield from as_utf8(blocks, encoding, "strict")
    except UnicodeDecodeError as error:
        problem = f"the file is not in {encoding}: byte 0x{error.object[error.start]:02X} has no meaning in it"
        fix = f"name another one with {option('encoding')}, or leave it out and it is detected"
        findings.stop(0, problem, "the encoding that the file was saved in", fix)


def _all(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from blocks


class Foreign(NamedTuple):
    """A format that is not text, and what to do with such a file."""

    name: str
    fix: str


RENAME = "rename the file to end in"
FOREIGN = {  # by the first bytes
    b"PK\x03\x04": Foreign("a spreadsheet, a DOCX document or a zip file", f"{RENAME} .xlsx, .ods, .docx or .zip"),
    b"\xd0\xcf\x11\xe0": Foreign("an old spreadsheet (.xls)", f"{RENAME} .xls"),
    b"\x1f\x8b": Foreign("gzip data", f"{RENAME} .gz"),
    b"PAR1": Foreign("parquet data", f"{RENAME} .parquet"),
    b"%PDF-": Foreign("a PDF document", f"{RENAME} .pdf"),
}


def foreign_format(block: bytes) -> Foreign | None:
    """Recognise a format other than text by the first bytes of a file."""
    return next((foreign for start, foreign in FOREIGN.items() if block.startswith(start)), None)


def mark_of(block: bytes) -> str | None:
    """Return the encoding named by the byte order mark at the start of a file, unless it is UTF-8."""
    marks = {mark: name for mark, name in BYTE_ORDER_MARKS.items() if mark != codecs.BOM_UTF8}
    return next((name for mark, name in marks.items() if block.startswith(mark)), None)


def as_utf8(blocks: Iterable[bytes], encoding: str, errors: str = "replace") -> Iterator[bytes]:
    """Convert blocks of another encoding to UTF-8; undecodable bytes become U+FFFD, or raise a UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(encoding)(errors=errors)
    for block in chain(blocks, [b""]):
        yield decoder.decode(block, final=not block).encode()


def raw_blocks(path: File, digest: Digest, findings: Findings) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file; a decompression bomb is refused."""
    is_gzip, unpacked, limits = path.suffix.lower() == ".gz", 0, findings.allowance
    try:
        with path.open("rb") as raw:
            if is_gzip:
                _check_declared(raw, findings)
            hashed = _Hashed(raw, digest)
            file = gzip.GzipFile(fileobj=hashed) if is_gzip else hashed
            while block := file.read(limits.block):
                unpacked += len(block)
                packed = path.root.getinfo(path.at).compress_size if isinstance(path, zipfile.Path) else digest.size
                if unpacked > (room := packed_room(packed, limits.free_unpacked)):
                    problem = f"{packed:,} bytes of compressed data unpack to more than {unpacked:,} bytes"
                    fix = "if you trust the file, unpack it and give the unpacked file"
                    findings.stop(0, problem, f"at most {room:,} bytes", fix)
                yield block
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        kind = "gzip" if is_gzip else "zip"
        findings.stop(
            0, f"the {kind} data is truncated or damaged ({error})", f"a complete {kind} file", "download it again"
        )
    except OSError as error:
        fix = "check its permissions and the disk"
        findings.stop(0, f"the file cannot be read ({error.strerror})", "a readable file", fix)


def _check_declared(file: IO[bytes], findings: Findings) -> None:
    """Check the declared size before unpacking: a gzip file ends in the size of its last member, modulo 4 GB.

    In a truncated file these four bytes are arbitrary, so a size that deflate cannot reach is ignored here.
    """
    packed = file.seek(0, io.SEEK_END)
    file.seek(max(0, packed - GZIP_SIZE))
    declared = int.from_bytes(file.read(GZIP_SIZE), "little")
    file.seek(0)
    room = packed_room(packed, findings.allowance.free_unpacked)
    if room < declared <= MOST_DEFLATED * packed:
        problem = f"{packed:,} bytes of compressed data claim to unpack to {declared:,} bytes"
        fix = "download it again, since it may be truncated; if you trust it, unpack it and give the unpacked file"
        findings.stop(0, problem, f"at most {room:,} bytes", fix)


def _with_line_ends(blocks: Iterator[bytes], path: File, findings: Findings) -> Iterator[bytes]:
    """Replace carriage returns by line feeds if the first LOOK bytes have no line feed."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= LOOK or b"\n" in start:
            break
    if b"\n" in start or b"\r" not in start.rstrip(b"\r"):
        yield from _all(start, blocks)
        return
    findings.notes.append(f"{path}: lines end in carriage returns without line feeds")
    for block in _all(start, blocks):
        yield block.replace(b"\r", b"\n")


def _whole_lines(blocks: Iterable[bytes], findings: Findings) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines. The text of an overlong line is reported and dropped; its line break stays."""
    number, rest, length = 1, b"", 0
    for block in blocks:
        start, newline, others = block.partition(b"\n")
        length += len(start)
        rest = b"" if length > findings.allowance.longest else rest + start
        if length > ENDLESS:
            findings.stop(number, f"{ENDLESS:,} bytes without a line break", "lines of text")
        if not newline:
            continue
        _note_overlong(number, length, findings)
        whole, newline, tail = others.rpartition(b"\n")
        yield number, rest + b"\n" + whole + newline
        number += 1 + whole.count(b"\n") + len(newline)
        rest, length = tail, len(tail)
    _note_overlong(number, length, findings)
    if rest:
        yield number, rest


def _note_overlong(line: int, length: int, findings: Findings) -> None:
    if length > (longest := findings.allowance.longest):
        kind = f"lines of more than {longest:,} bytes"
        findings.problem(line, f"the line has more than {longest:,} bytes", "shorter lines", kind)


def _decode_line(number: int, line: bytes, findings: Findings, other: str | None) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        text = _decode_other(number, line, error.start, findings, other)
    if "\0" not in text:
        return text
    if findings.allowance.repair:
        findings.repaired(number, "lines with NUL characters, which were removed")
        return text.replace("\0", "")
    if findings.strict:
        problem = f"NUL character at character {text.index(chr(0)) + 1} of the line"
        findings.problem(number, problem, "text", "lines with a NUL character")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text


def _decode_other(number: int, line: bytes, start: int, findings: Findings, other: str | None) -> str:
    """Decode a line that is not UTF-8. If such rows are tolerated, its bytes become surrogates, which cells reject."""
    if other:
        findings.repaired(number, f"lines that are not UTF-8, read as {shown_name(other)}")
        return line.decode(other)
    if not findings.strict:
        return line.decode(errors="surrogateescape")
    problem = f"invalid byte 0x{line[start]:02X} at byte {start + 1} of the line"
    findings.problem(number, problem, "UTF-8", "lines that are not UTF-8", OTHER_ENCODING)
    return line.decode(errors="replace")


def _encoding_of_file(path: File) -> str | None:
    """The encoding of all lines of a file that are not UTF-8."""
    unreported = Findings()
    unreported.begin(str(path), "line")
    with suppress(DataError):
        blocks = _whole_lines(raw_blocks(path, Digest(), unreported), unreported)
        return encoding_of(line for _, raw in blocks for line in raw.split(b"\n"))
    return None


def text_lines(blocks: Iterable[Block], findings: Findings, spaces: str | None = None) -> Iterator[Records]:
    """Yield the lines that are not blank; a blank line has only `spaces`, by default any white space."""
    for first, text in blocks:
        lines = split_lines(text)
        numbers: Sequence[int] = range(first, first + len(lines))
        if not all(map(str.strip, lines)):
            numbers = [number for number, line in zip(numbers, lines, strict=True) if line.strip(spaces)]
            findings.skipped[BLANK_LINES] += len(lines) - len(numbers)
            lines = [line for line in lines if line.strip(spaces)]
        yield numbers, lines


def split_lines(text: str) -> list[str]:
    """Split text into lines without line breaks; a file may end in a bare carriage return."""
    end = "\n" if text.endswith("\n") else "\r"
    return text.replace("\r\n", "\n").removesuffix(end).split("\n")


def twin_lines(
    paths: Sequence[File], digests: Sequence[Digest], findings: Findings, encoding: str | None = None
) -> Iterator[Records]:
    """Yield the lines of two files paired by number; pairs with a blank side are skipped and counted."""
    sides = [
        _side(path, text_blocks(path, digest, findings, encoding), findings)
        for path, digest in zip(paths, digests, strict=True)
    ]
    waiting: list[list[str]] = [[], []]
    number = 1
    while all(side or _more(side, lines) for side, lines in zip(waiting, sides, strict=True)):
        paired = min(map(len, waiting))
        rows = list(zip(*(side[:paired] for side in waiting), strict=True))
        waiting = [side[paired:] for side in waiting]
        yield _without_blank(range(number, number + paired), rows, findings)
        number += paired
    counts = [number - 1 + len(side) + sum(map(len, lines)) for side, lines in zip(waiting, sides, strict=True)]
    if counts[0] != counts[1]:
        problem = " but ".join(f"{count:,} lines in {path}" for count, path in zip(counts, paths, strict=True))
        findings.stop(0, problem, "the same number of lines in both", "take both files from the same download")


def _side(path: File, blocks: Iterator[Block], findings: Findings) -> Iterator[list[str]]:
    while True:
        with findings.within(str(path)):
            block = next(blocks, None)
        if block is None:
            return
        yield split_lines(block[1])


def _more(side: list[str], lines: Iterator[list[str]]) -> bool:
    side += next(lines, [])
    return bool(side)


def _without_blank(numbers: Sequence[int], rows: list[tuple[str, ...]], findings: Findings) -> Records:
    full = [all(map(str.strip, row)) for row in rows]
    if all(full):
        return numbers, rows
    empty = sum(not any(map(str.strip, row)) for row in rows)
    findings.skipped[BLANK_LINES] += empty
    findings.skipped[HALF_BLANK] += len(full) - sum(full) - empty
    kept = [at for at, whole in enumerate(full) if whole]
    return [numbers[at] for at in kept], [rows[at] for at in kept]
