"""What there is to read under a name: a file, a folder of files, a saved data set, or a data set on the hub."""

import json
import os
import re
import stat
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sentloom.data.encodings import EXPORT
from sentloom.data.limits import MOST_FACTS, MOST_FILES
from sentloom.data.zipped import twins_in_zip
from sentloom.errors import InputError, MissingPart
from sentloom.files import is_inside

LINE_KINDS = ("txt", "csv", "tsv", "jsonl")  # these also with .gz
JSON = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
SPREADSHEETS = (".xlsx", ".xls", ".ods")
TWINS = "twins"  # two files of lines, each line of the second the translation of that line of the first
BETWEEN_TWINS = "+"
WANTED = (
    "a file of the kind txt, csv, tsv, jsonl, json (each also .gz) or parquet, a folder of such files, "
    "two files of lines, as in corpus.en+corpus.de, or a zip file of two such files"
)
MOST_SPLITS = 20  # that a message names
HUB_FORM = "owner/name[/configuration][@revision][:split]"
HUB_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:/([\w.-]+))?(?:@([\w.-]+))?(?::([\w.-]+))?", re.ASCII)

File: TypeAlias = Path | zipfile.Path


class Input(NamedTuple):
    """One thing to read: its name for people, its kind, and the files it is in (one, but for `arrow` and twins)."""

    name: str
    kind: str
    paths: tuple[Path, ...]
    members: tuple[str, ...] = ()  # of a zip file

    @property
    def files(self) -> tuple[File, ...]:
        """What is opened: the paths, or the members of the zip file there."""
        return tuple(zipfile.Path(self.paths[0], member) for member in self.members) or self.paths

    @property
    def place_name(self) -> str:
        """What its rows are counted by."""
        return "line" if self.kind in (*LINE_KINDS, TWINS) else "row"


def find_inputs(path: str | Path) -> list[Input]:
    """The inputs under a path that is there, else under a name on the hub."""
    local = Path(path)
    try:
        if local.is_dir():
            return _folder(local)
        exists = local.exists()
    except OSError as error:
        found = f"a path that cannot be read ({error.strerror})"
        raise InputError(str(path), found, WANTED, "check the path and its permissions") from error
    kind, is_zip = _kind(local), local.suffix.lower() == ".zip"
    if exists:
        _check_regular(local)
    if exists and is_zip:
        return [_zipped(str(path))]
    if exists and not kind:
        fix = EXPORT if local.suffix.lower() in SPREADSHEETS else "rename or convert the file"
        raise InputError(str(path), f"the extension {local.suffix!r}", WANTED, fix)
    if exists and kind:
        return [Input(str(path), kind, (local,))]
    if BETWEEN_TWINS in str(path):
        return [_twins(str(path))]
    match = hub_name(str(path))
    if match is None:
        raise InputError(str(path), "no such file or folder", WANTED, "check the path")
    return [_hub(match)]


def hub_name(path: str) -> re.Match[str] | None:
    """The parts of a hub name: repository, configuration, revision, split; None if it can only be a path."""
    is_file = _kind(Path(path)) or path.lower().endswith(".zip")
    return None if is_file else HUB_NAME.fullmatch(path)


def _check_regular(path: Path) -> None:
    """Pipes, sockets and devices may never end, and data are read more than once."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        tests = {"a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK, "a device": stat.S_ISCHR}
        found = next((name for name, test in tests.items() if test(mode)), "a special file")
        raise InputError(str(path), found, "a regular file", "save the data to a file first")


def _zipped(name: str) -> Input:
    members = twins_in_zip(Path(name))
    return Input(f"{name}/{BETWEEN_TWINS.join(members)}", TWINS, (Path(name),), members)


def _twins(name: str) -> Input:
    pair = twin_files(name)
    if pair is None:
        left, _, right = name.partition(BETWEEN_TWINS)
        missing = [half for half in (left, right) if not Path(half).is_file()]
        told = missing and BETWEEN_TWINS not in right
        found = f"no file {' and no file '.join(missing)}" if told else "no such file or files"
        raise InputError(name, found, WANTED, "check the paths")
    tables = [str(path) for path in pair if _kind(path) not in ("txt", None)]
    if tables:
        found = f"{tables[0]}, which has columns of its own"
        raise InputError(name, found, "two files of plain lines", "name one file with the columns source and target")
    return Input(name, TWINS, pair)


def twin_files(name: str, folder: Path = Path()) -> tuple[Path, Path] | None:
    """Two files in a folder by the names on both sides of a plus, which the names themselves may have too."""
    halves = name.split(BETWEEN_TWINS)
    cuts = [[folder / BETWEEN_TWINS.join(part) for part in (halves[:at], halves[at:])] for at in range(1, len(halves))]
    pairs = [(left, right) for left, right in cuts if left.is_file() and right.is_file()]
    return pairs[0] if len(pairs) == 1 else None


def _kind(path: Path) -> str | None:
    """The kind that a name tells; .json may hold JSON lines or one array, which is seen when it is read."""
    name = path.name.lower()
    kind = Path(name.removesuffix(".gz")).suffix.removeprefix(".")
    if JSON.search(name):
        return "jsonl"
    return kind if kind in LINE_KINDS or name.endswith(".parquet") else None


def _folder(folder: Path) -> list[Input]:
    """The data files in a folder, by name; hidden files, .json (often settings), others and folders are left alone."""
    names = _file_names(folder)
    if {"state.json", "dataset_info.json"} <= names:
        return [_saved(folder)]
    if "dataset_dict.json" in names:
        splits = ", ".join(sorted(split.parent.name for split in folder.glob("*/state.json"))[:MOST_SPLITS])
        raise InputError(str(folder), f"a saved data set with the splits {splits}", "one split", "name its folder")
    paths = [folder / name for name in sorted(names) if not (name.startswith(".") or JSON.search(name))]
    inputs = [Input(str(path), kind, (path,)) for path in paths if (kind := _kind(path))]
    _check_inside(folder, [entry.paths[0].name for entry in inputs])
    kinds = {entry.kind for entry in inputs}
    if len(kinds) != 1:
        found = f"files of the kinds {', '.join(sorted(kinds))}" if kinds else "a folder without data files"
        raise InputError(str(folder), found, "data files, all of one kind", "read one kind at a time: name the files")
    return inputs


def _check_inside(folder: Path, names: Sequence[str]) -> None:
    """A folder that others made may hold a link to any file of yours."""
    if outside := next((name for name in names if not is_inside(folder, name)), None):
        found, wanted = f"{outside!r}, a link that leads out of the folder", "files inside the folder"
        raise InputError(str(folder), found, wanted, "if you trust it, copy the file into the folder or name it alone")


def _file_names(folder: Path) -> set[str]:
    """The regular files in a folder; other things in it are left alone."""
    names: set[str] = set()
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries, 1):
            if number > MOST_FILES:
                found, wanted = f"more than {MOST_FILES:,} files", f"at most {MOST_FILES:,}"
                raise InputError(str(folder), found, wanted, "join them to fewer and larger files")
            with suppress(OSError):  # a link that leads to itself
                if entry.is_file():
                    names.add(entry.name)
    return names


def _saved(folder: Path) -> Input:
    """A folder made by `save_to_disk`: Arrow streams that its state names."""
    file, wanted = folder / "state.json", "a list of data files in the same folder"
    try:
        if file.stat().st_size > MOST_FACTS:
            raise ValueError(f"more than {MOST_FACTS:,} bytes")
        state = json.loads(file.read_text("utf-8"))
        paths = tuple(folder / part["filename"] for part in state["_data_files"])
        if strange := next((path for path in paths if path.resolve().parent != folder.resolve()), None):
            raise ValueError(f"{strange}, which leads out of the folder")
        for path in paths:
            _check_regular(path)
    except FileNotFoundError as error:
        raise InputError(str(file), f"no file {Path(error.filename).name}", wanted, "save the data again") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        found = str(error)[:300] or "no such list"
        raise InputError(str(file), found, wanted, "save the data again") from error
    return Input(str(folder), "arrow", paths)


def _hub(match: re.Match[str]) -> Input:
    """A split of a data set on the hub, by default `train`, fetched into the cache of the `datasets` package."""
    name, (repository, configuration, revision, split) = match[0], match.groups()
    try:
        from datasets import load_dataset
    except ImportError as error:
        fix = 'check the path, or for a hub name: pip install "sentloom[hub]"'
        raise MissingPart(name, "no such path, and no package `datasets`", "a path, or the package", fix) from error
    try:
        data = load_dataset(repository, configuration, revision=revision, split=split or "train")
    except Exception as error:  # the package and the network raise errors of many kinds; all mean the same here
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        found = f"neither a path that exists nor a data set that the hub gives ({reason})"
        fix = "check the path; for a hub name check the network, the name and its split"
        raise InputError(name, found, f"{WANTED}, or {HUB_FORM}", fix) from error
    return Input(name, "arrow", tuple(Path(part["filename"]) for part in data.cache_files))
