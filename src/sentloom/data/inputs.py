"""Find what to read: a file, a folder of files, two parallel text files (also in a zip file), or data on the hub."""

import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from sentloom.data.limits import FREE_UNPACKED, MOST_FACTS, MOST_FILES, packed_room
from sentloom.errors import InputError, MissingPart, first_line
from sentloom.files import is_inside

File: TypeAlias = Path | zipfile.Path

LINE_KINDS = ("txt", "csv", "tsv", "jsonl")  # each also with .gz
JSON = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
SPREADSHEETS = (".xlsx", ".xls", ".ods")
MEMORY = "memory"  # rows that are not in a file
TWINS = "twins"  # two text files in which line n of the second translates line n of the first
BETWEEN_TWINS = "+"
EXPECTED = (
    "a .txt, .csv, .tsv, .jsonl, .json (each also .gz) or .parquet file, a folder of such files, "
    "two parallel text files such as corpus.en+corpus.de, or a zip file with two such files"
)
EXPORT = "open it in the spreadsheet program and save it as CSV (UTF-8)"
MOST_SPLITS = 20  # named in a message
HUB_FORM = "owner/name[/configuration][@revision][:split]"
HUB_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:/([\w.-]+))?(?:@([\w.-]+))?(?::([\w.-]+))?", re.ASCII)

TWINS_EXPECTED = "a zip file with two text files such as corpus.en and corpus.de; a README may be there too"
LANGUAGE = re.compile(r"[a-z]{2,3}([_-]\w+)?")  # de, pt_br, zh_Hant
NO_LANGUAGES = ("csv", "htm", "ids", "md", "rst", "tsv", "txt", "xml")
UNREAD = 0x01 | 0x20 | 0x40  # flags: encrypted, patched, strongly encrypted


class Input(NamedTuple):
    """One thing to read: its display name, its kind, and its files (one, except for `arrow` and twins)."""

    name: str
    kind: str
    paths: tuple[Path, ...]
    members: tuple[str, ...] = ()  # of a zip file
    rows: object = None  # of the kind `memory`

    @property
    def files(self) -> tuple[File, ...]:
        """The files to open: the paths, or the members of the zip file."""
        return tuple(zipfile.Path(self.paths[0], member) for member in self.members) or self.paths

    @property
    def place_name(self) -> str:
        """What a row is called in messages: a line or a row."""
        return "line" if self.kind in (*LINE_KINDS, TWINS) else "row"


def find_inputs(path: str | Path) -> list[Input]:
    """Return the inputs at a path, or of a name on the hub if there is no such path."""
    local = Path(path)
    try:
        if local.is_dir():
            return _folder(local)
        exists = local.exists()
    except OSError as error:
        problem = f"the path cannot be read ({error.strerror})"
        raise InputError(str(path), problem, EXPECTED, "check the path and its permissions") from error
    kind, is_zip = _kind(local), local.suffix.lower() == ".zip"
    if exists:
        _check_regular(local)
    if exists and is_zip:
        return [_zipped(str(path))]
    if exists and not kind:
        fix = EXPORT if local.suffix.lower() in SPREADSHEETS else "rename or convert the file"
        raise InputError(str(path), f"unsupported extension {local.suffix!r}", EXPECTED, fix)
    if exists and kind:
        return [Input(str(path), kind, (local,))]
    if BETWEEN_TWINS in str(path):
        return [_twins(str(path))]
    match = hub_name(str(path))
    if match is None:
        raise InputError(str(path), "no such file or folder", EXPECTED, "check the path")
    return [_hub(match)]


def hub_name(path: str) -> re.Match[str] | None:
    """Match the parts of a hub name: repository, configuration, revision, split; None if it can only be a path."""
    is_file = _kind(Path(path)) or path.lower().endswith(".zip")
    return None if is_file else HUB_NAME.fullmatch(path)


def _kind(path: Path) -> str | None:
    """Return the kind that the extension implies; whether .json holds JSON lines or one array is detected later."""
    name = path.name.lower()
    kind = Path(name.removesuffix(".gz")).suffix.removeprefix(".")
    if JSON.search(name):
        return "jsonl"
    return kind if kind in LINE_KINDS or name.endswith(".parquet") else None


def _check_regular(path: Path) -> None:
    """Refuse pipes, sockets and devices: they may never end, and data is read more than once."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        tests = {"a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK, "a device": stat.S_ISCHR}
        kind = next((name for name, test in tests.items() if test(mode)), "a special file")
        raise InputError(str(path), f"this is {kind}", "a regular file", "save the data to a file first")


def _folder(folder: Path) -> list[Input]:
    """Return the data files in a folder, sorted; ignores hidden files, .json (often settings), others and folders."""
    names = _file_names(folder)
    if {"state.json", "dataset_info.json"} <= names:
        return [_saved(folder)]
    if "dataset_dict.json" in names:
        splits = ", ".join(sorted(split.parent.name for split in folder.glob("*/state.json"))[:MOST_SPLITS])
        problem = f"this saved data set has the splits {splits}"
        raise InputError(str(folder), problem, "one split", "give the folder of one split")
    paths = [folder / name for name in sorted(names) if not (name.startswith(".") or JSON.search(name))]
    inputs = [Input(str(path), kind, (path,)) for path in paths if (kind := _kind(path))]
    _check_inside(folder, [entry.paths[0].name for entry in inputs])
    kinds = {entry.kind for entry in inputs}
    if len(kinds) != 1:
        problem = f"the folder has files of the kinds {', '.join(sorted(kinds))}" if kinds else "no data files here"
        raise InputError(str(folder), problem, "data files of one kind", "give the files of one kind by name")
    return inputs


def _file_names(folder: Path) -> set[str]:
    """Return the names of the regular files in a folder."""
    names: set[str] = set()
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries, 1):
            if number > MOST_FILES:
                fix = "merge them into fewer, larger files"
                raise InputError(str(folder), f"the folder has more than {MOST_FILES:,} files", "", fix)
            with suppress(OSError):  # a link to itself
                if entry.is_file():
                    names.add(entry.name)
    return names


def _check_inside(folder: Path, names: Sequence[str]) -> None:
    """Refuse links out of the folder: a folder made by someone else may link to any of your files."""
    if outside := next((name for name in names if not is_inside(folder, name)), None):
        problem, fix = f"{outside!r} links out of the folder", "if you trust it, copy the file into the folder"
        raise InputError(str(folder), problem, "files inside the folder", f"{fix} or give its own path")


def _saved(folder: Path) -> Input:
    """Return the Arrow streams of a folder made by `save_to_disk`, as its state.json lists them."""
    file, expected = folder / "state.json", "a list of data files in the same folder"
    try:
        if file.stat().st_size > MOST_FACTS:
            raise ValueError(f"the file has more than {MOST_FACTS:,} bytes")
        state = json.loads(file.read_text("utf-8"))
        paths = tuple(folder / part["filename"] for part in state["_data_files"])
        if strange := next((path for path in paths if path.resolve().parent != folder.resolve()), None):
            raise ValueError(f"{strange} is outside the folder")
        for path in paths:
            _check_regular(path)
    except FileNotFoundError as error:
        problem = f"no such file: {Path(error.filename).name}"
        raise InputError(str(file), problem, expected, "save the data again") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        problem = str(error)[:300] or "no list of data files"
        raise InputError(str(file), problem, expected, "save the data again") from error
    return Input(str(folder), "arrow", paths)


def _twins(name: str) -> Input:
    pair = twin_files(name)
    if pair is None:
        left, _, right = name.partition(BETWEEN_TWINS)
        missing = [half for half in (left, right) if not Path(half).is_file()]
        named = missing and BETWEEN_TWINS not in right
        problem = f"no such file: {' and '.join(missing)}" if named else "no such file or files"
        raise InputError(name, problem, EXPECTED, "check the paths")
    tables = [str(path) for path in pair if _kind(path) not in ("txt", None)]
    if tables:
        fix = "give one file with the columns source and target"
        raise InputError(name, f"{tables[0]} is a table with columns", "two plain text files", fix)
    return Input(name, TWINS, pair)


def twin_files(name: str, folder: Path = Path()) -> tuple[Path, Path] | None:
    """Find two files in a folder by the names on both sides of a plus; the names themselves may contain one too."""
    halves = name.split(BETWEEN_TWINS)
    cuts = [[folder / BETWEEN_TWINS.join(part) for part in (halves[:at], halves[at:])] for at in range(1, len(halves))]
    pairs = [(left, right) for left, right in cuts if left.is_file() and right.is_file()]
    return pairs[0] if len(pairs) == 1 else None


def _zipped(name: str) -> Input:
    members = twins_in_zip(Path(name))
    return Input(f"{name}/{BETWEEN_TWINS.join(members)}", TWINS, (Path(name),), members)


def twins_in_zip(path: Path, free_unpacked: int = FREE_UNPACKED) -> tuple[str, str]:
    """Return the twin members, ordered as the languages in their stem: for en-de, en comes first."""
    try:
        with _Directory(path) as file, ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except Exception as error:  # many kinds of errors, as of damage; all mean the same
        problem = f"the zip file cannot be read ({error})"
        raise InputError(str(path), problem, TWINS_EXPECTED, "download it again") from None
    if len(members) > MOST_FILES:
        problem, expected = f"{len(members):,} files are too many", f"at most {MOST_FILES:,}"
        raise InputError(str(path), problem, expected, "unzip it and give the files: corpus.en+corpus.de")
    pairs = _pairs([member.filename for member in members])
    if len(pairs) != 1:
        several = " and ".join(" with ".join(pair) for pair in pairs[:3])
        problem = f"more than one pair of files: {several}" if several else f"no pair of files, {_listed(members)}"
        raise InputError(str(path), problem, TWINS_EXPECTED, "unzip it and give the files: corpus.en+corpus.de")
    for member in members:
        if member.filename in pairs[0]:
            _check_member(path, member, free_unpacked)
    return pairs[0]


class _Directory(io.FileIO):
    """A zip file of which only the directory is read, at once; a huge directory is refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_FACTS:
            raise ValueError(f"the list of files has {size:,} bytes")
        return super().read(size) or b""


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of names with the same stem and two languages."""
    languages_of: dict[str, list[str]] = {}
    for name in names:
        stem, _, language = name.rpartition(".")
        hidden = PurePosixPath(name).name.startswith(".")  # macOS adds such hidden twins
        if not hidden and LANGUAGE.fullmatch(language) and language not in NO_LANGUAGES:
            languages_of.setdefault(stem, []).append(language)
    couples = [(stem, languages) for stem, languages in languages_of.items() if len(languages) == 2]
    return [_ordered(stem, *languages) for stem, languages in couples]


def _ordered(stem: str, left: str, right: str) -> tuple[str, str]:
    first, second = (right, left) if stem.endswith(f"{right}-{left}") else (left, right)
    return f"{stem}.{first}", f"{stem}.{second}"


def _listed(members: Sequence[ZipInfo]) -> str:
    names = ", ".join(member.filename for member in members[:5])
    return f"only {names}{' ...' if len(members) > 5 else ''}" if members else "the zip file is empty"


def _check_member(path: Path, member: ZipInfo, free_unpacked: int) -> None:
    if member.flag_bits & UNREAD or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        problem = f"{member.filename} is encrypted or uses a rare compression"
        raise InputError(str(path), problem, "members that are deflated or stored", "unzip it and give the files")
    room = packed_room(member.compress_size, free_unpacked)
    if member.file_size > room:
        problem = f"{member.compress_size:,} bytes of {member.filename} unpack to {member.file_size:,}"
        raise InputError(
            str(path), problem, f"at most {room:,} bytes", "if you trust the file, unzip it and give the files"
        )


def _hub(match: re.Match[str]) -> Input:
    """Download a split of a hub data set, by default `train`, into the cache of the `datasets` package."""
    name, (repository, configuration, revision, split) = match[0], match.groups()
    try:
        from datasets import load_dataset
    except ImportError as error:
        problem = "no such path; to read it from the hub, the package `datasets` is needed, which is not installed"
        fix = 'check the path, or install the package: pip install "sentloom[hub]"'
        raise MissingPart(name, problem, "", fix) from error
    try:
        data = load_dataset(repository, configuration, revision=revision, split=split or "train")
    except Exception as error:  # the package and the network raise many kinds of errors; all mean the same here
        problem = f"no such path, and no such data set on the hub ({first_line(error)})"
        fix = "check the path; for a hub name check the network, the name and its split"
        raise InputError(name, problem, f"{EXPECTED}, or {HUB_FORM}", fix) from error
    return Input(name, "arrow", tuple(Path(part["filename"]) for part in data.cache_files))
