"""Find twin files in a zip file, the format of OPUS translations: Books.de-en.de and Books.de-en.en."""

import io
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from sentloom.data.limits import FREE_UNPACKED, MOST_FACTS, MOST_FILES, packed_room
from sentloom.errors import InputError

EXPECTED = "a zip file with two text files such as corpus.en and corpus.de; a README may be there too"
LANGUAGE = re.compile(r"[a-z]{2,3}([_-]\w+)?")  # de, pt_br, zh_Hant
NO_LANGUAGES = ("csv", "htm", "ids", "md", "rst", "tsv", "txt", "xml")
UNREAD = 0x01 | 0x20 | 0x40  # flags: encrypted, patched, strongly encrypted


def twins_in_zip(path: Path, free_unpacked: int = FREE_UNPACKED) -> tuple[str, str]:
    """Return the twin members, ordered as the languages in their stem: for en-de, en comes first."""
    try:
        with _Directory(path) as file, ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except Exception as error:  # many kinds of errors, as of damage; all mean the same
        problem = f"the zip file cannot be read ({error})"
        raise InputError(str(path), problem, EXPECTED, "download it again") from None
    if len(members) > MOST_FILES:
        problem, expected = f"{len(members):,} files are too many", f"at most {MOST_FILES:,}"
        raise InputError(str(path), problem, expected, "unzip it and give the files: corpus.en+corpus.de")
    pairs = _pairs([member.filename for member in members])
    if len(pairs) != 1:
        several = " and ".join(" with ".join(pair) for pair in pairs[:3])
        problem = f"more than one pair of files: {several}" if several else f"no pair of files, {_listed(members)}"
        raise InputError(str(path), problem, EXPECTED, "unzip it and give the files: corpus.en+corpus.de")
    for member in members:
        if member.filename in pairs[0]:
            _check(path, member, free_unpacked)
    return pairs[0]


class _Directory(io.FileIO):
    """A zip file of which only the directory is read, at once; a huge directory is refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_FACTS:
            raise ValueError(f"the list of files has {size:,} bytes")
        return super().read(size) or b""


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of names with the same stem and two languages."""
    found: dict[str, list[str]] = {}
    for name in names:
        stem, _, language = name.rpartition(".")
        hidden = PurePosixPath(name).name.startswith(".")  # macOS adds such hidden twins
        if not hidden and LANGUAGE.fullmatch(language) and language not in NO_LANGUAGES:
            found.setdefault(stem, []).append(language)
    couples = [(stem, languages) for stem, languages in found.items() if len(languages) == 2]
    return [_ordered(stem, *languages) for stem, languages in couples]


def _ordered(stem: str, one: str, other: str) -> tuple[str, str]:
    first, second = (other, one) if stem.endswith(f"{other}-{one}") else (one, other)
    return f"{stem}.{first}", f"{stem}.{second}"


def _listed(members: Sequence[ZipInfo]) -> str:
    names = ", ".join(member.filename for member in members[:5])
    return f"only {names}{' ...' if len(members) > 5 else ''}" if members else "the zip file is empty"


def _check(path: Path, member: ZipInfo, free_unpacked: int) -> None:
    if member.flag_bits & UNREAD or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        problem = f"{member.filename} is encrypted or uses a rare compression"
        raise InputError(str(path), problem, "members that are deflated or stored", "unzip it and give the files")
    room = packed_room(member.compress_size, free_unpacked)
    if member.file_size > room:
        problem = f"{member.compress_size:,} bytes of {member.filename} unpack to {member.file_size:,}"
        raise InputError(
            str(path), problem, f"at most {room:,} bytes", "if you trust the file, unzip it and give the files"
        )
