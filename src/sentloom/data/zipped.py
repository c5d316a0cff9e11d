"""Twin files in a zip file, the form in which OPUS ships translations: Books.de-en.de and Books.de-en.en."""

import io
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from sentloom.data.limits import MOST_FACTS, MOST_FILES, packed_room
from sentloom.errors import InputError

WANTED = "a zip file with two files of lines, as corpus.en and corpus.de, perhaps beside a README"
LANGUAGE = re.compile(r"[a-z]{2,3}([_-]\w+)?")  # de, pt_br, zh_Hant
NO_LANGUAGES = ("csv", "htm", "ids", "md", "rst", "tsv", "txt", "xml")
UNREAD = 0x01 | 0x20 | 0x40  # flags: encrypted, patched, strongly encrypted


def twins_in_zip(path: Path) -> tuple[str, str]:
    """The members that are twins. The languages come in the order of the name before them: of en-de, en is first."""
    try:
        with _Directory(path) as file, ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except Exception as error:  # of many kinds, as the damage is; all mean the same
        raise InputError(str(path), f"no readable zip file ({error})", WANTED, "fetch it again") from None
    if len(members) > MOST_FILES:
        found, wanted = f"{len(members):,} files", f"at most {MOST_FILES:,}"
        raise InputError(str(path), found, wanted, "unzip it, and name the files: corpus.en+corpus.de")
    pairs = _pairs([member.filename for member in members])
    if len(pairs) != 1:
        found = " and ".join(" with ".join(pair) for pair in pairs[:3]) or _listed(members)
        raise InputError(str(path), found, WANTED, "unzip it, and name the files: corpus.en+corpus.de")
    for member in members:
        if member.filename in pairs[0]:
            _check(path, member)
    return pairs[0]


class _Directory(io.FileIO):
    """A zip file of which only the directory is read, all at once; a huge one is refused before that."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_FACTS:
            raise ValueError(f"a list of files of {size:,} bytes")
        return super().read(size) or b""


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Those with one stem and two languages."""
    found: dict[str, list[str]] = {}
    for name in names:
        stem, _, language = name.rpartition(".")
        hidden = PurePosixPath(name).name.startswith(".")  # macOS puts such twins beside the files
        if not hidden and LANGUAGE.fullmatch(language) and language not in NO_LANGUAGES:
            found.setdefault(stem, []).append(language)
    couples = [(stem, languages) for stem, languages in found.items() if len(languages) == 2]
    return [_ordered(stem, *languages) for stem, languages in couples]


def _ordered(stem: str, one: str, other: str) -> tuple[str, str]:
    first, second = (other, one) if stem.endswith(f"{other}-{one}") else (one, other)
    return f"{stem}.{first}", f"{stem}.{second}"


def _listed(members: Sequence[ZipInfo]) -> str:
    names = ", ".join(member.filename for member in members[:5])
    return f"the files {names}{' ...' if len(members) > 5 else ''}" if members else "an empty zip file"


def _check(path: Path, member: ZipInfo) -> None:
    if member.flag_bits & UNREAD or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        found = f"{member.filename}, encrypted or packed in a rare way"
        raise InputError(str(path), found, "members that are deflated or stored", "unzip it, and name the files")
    if member.file_size > packed_room(member.compress_size):
        found = f"{member.filename}: {member.compress_size:,} bytes that unpack to {member.file_size:,}"
        wanted = f"at most {packed_room(member.compress_size):,} bytes from these"
        raise InputError(str(path), found, wanted, "if you trust the file, unzip it, and name the files")
