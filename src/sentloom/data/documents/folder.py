"""What is in a folder: its files, also in folders below it, and those that are not read, with the reason."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sentloom.data.limits import MOST_DOCUMENTS
from sentloom.errors import InputError
from sentloom.files import is_inside

MOST_REASONS, MOST_LISTED = 8, 10  # in a message
OWN_BY = "~$"  # a file that Word or Excel makes while it has another one open


class Unread(NamedTuple):
    """A file that is not read."""

    name: str
    why: str


def read_and_unread(files: int, unread: Sequence[Unread]) -> list[str]:
    """How many files there were and were read, and each that was not, the first of many.

    >>> read_and_unread(61, [Unread("docs/scan.pdf", "without text")])
    ['61 files: 60 read, 1 not read: 1 without text', '  docs/scan.pdf: without text']
    """
    if not unread:
        return [f"{files:,} files, all read"] if files > 1 else []
    reasons = Counter(why for _, why in unread).most_common()
    counts = ", ".join(f"{count:,} {why}" for why, count in reasons[:MOST_REASONS])
    lines = [f"{files:,} files: {files - len(unread):,} read, {len(unread):,} not read: {counts}"]
    lines += [f"  {name}: {why}" for name, why in unread[:MOST_LISTED]]
    more = len(unread) - MOST_LISTED
    return [*lines, f"  and {more:,} more: sentloom check --json FILE lists all"] if more > 0 else lines


def files_in(folder: Path) -> tuple[list[str], list[Unread]]:
    """The names of the regular files below a folder, sorted, and what is hidden or links out of it."""
    names, unread = list[str](), list[Unread]()
    for name, entry in _below(folder, ""):
        if entry.name.startswith((".", OWN_BY)):
            unread.append(Unread(name, "hidden"))
        elif why := _why_not(folder, name, entry):
            unread.append(Unread(name, why))
        else:
            names.append(name)
        if len(names) + len(unread) > MOST_DOCUMENTS:
            fix = "give the folders in it by name"
            raise InputError(str(folder), f"the folder has more than {MOST_DOCUMENTS:,} files", "", fix)
    return sorted(names), sorted(unread)


def _below(folder: Path, above: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file, and every hidden or linked folder; links to folders are not followed, so there is no circle."""
    waiting = [above]
    while waiting:
        here = waiting.pop()
        with os.scandir(folder / here) as entries:
            for entry in entries:
                name = f"{here}{entry.name}"
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    waiting.append(f"{name}/")
                else:
                    yield name, entry


def _why_not(folder: Path, name: str, entry: os.DirEntry[str]) -> str:
    """Why a file is not read; "" if it is."""
    try:
        if entry.is_symlink() and not is_inside(folder, name):
            return "links out of the folder"
        if entry.is_dir():
            return "a link to a folder"
        return "" if entry.is_file() else "not a regular file"
    except (OSError, ValueError):
        return "a link to nothing"
