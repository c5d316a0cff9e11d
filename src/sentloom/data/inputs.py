"""Find what to read: a file, a folder of documents or data files, two parallel text files, or data on the hub.

How a file is read may follow its name: `book.xlsx?sheet=2024`, `faq.csv?encoding=windows-1252`. The commands write
their options there, so that a name says everything that is needed to read the same rows again.
"""

import io
import json
import re
import stat
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlencode
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from sentloom.data.dataset import PASSAGE
from sentloom.data.documents.folder import Unread, files_in
from sentloom.data.documents.parsers import format_of, head_of, missing_package
from sentloom.data.documents.plain import is_wrapped
from sentloom.data.encodings import known
from sentloom.data.layout import ShapeRequest
from sentloom.data.limits import FREE_UNPACKED, MOST_FACTS, MOST_FILES, packed_room
from sentloom.errors import InputError, MissingPart, first_line, option

File: TypeAlias = Path | zipfile.Path

LINE_KINDS = ("txt", "csv", "tsv", "jsonl")  # each also with .gz
TEXT_KINDS = (*LINE_KINDS, "json")
JSON = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
SPREADSHEETS = ("xlsx", "xlsm", "xlsb", "xls", "ods")
MEMORY = "memory"  # rows that are not in a file
TWINS = "twins"  # two text files in which line n of the second translates line n of the first
DOCUMENTS = "documents"  # files of text, each with a title and headings
SHEET = "sheet"  # of a spreadsheet
BEIR = "beir"  # a folder with a corpus, queries and judgements
BETWEEN_TWINS = "+"
EXPECTED = (
    "a .txt, .csv, .tsv, .jsonl, .json (each also .gz), .parquet or .xlsx file, a document (.md, .html, .pdf, .docx), "
    "a folder of such files, two parallel text files such as corpus.en+corpus.de, or a zip file with two such files"
)
EXTRA = 'pip install "sentloom[documents]"'
# Documents about the data files that they are beside.
ABOUT = re.compile(
    r"(readme|licen[cs]e|copying|changelog|contributing|notice|authors|dataset_?card)\b.*", re.IGNORECASE
)
SOURCES = re.compile(r"(^|.*/)_sources/(.*)\.\w+\.txt")  # what Sphinx makes pages from: guide.rst.txt of guide.html
BEIR_FILES = ("corpus", "queries")
NO_FILES = "check the folder, or convert its files"
SHOWN_UNREAD = 5
MOST_SPLITS = 20  # named in a message
HUB_FORM = "owner/name[/configuration][@revision][:split]"
HUB_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:/([\w.-]+))?(?:@([\w.-]+))?(?::([\w.-]+))?", re.ASCII)

TWINS_EXPECTED = "a zip file with two text files such as corpus.en and corpus.de; a README may be there too"
LANGUAGE = re.compile(r"[a-z]{2,3}([_-]\w+)?")  # de, pt_br, zh_Hant
NO_LANGUAGES = ("csv", "htm", "ids", "md", "rst", "tsv", "txt", "xml")
UNREAD = 0x01 | 0x20 | 0x40  # flags: encrypted, patched, strongly encrypted


class How(NamedTuple):
    """How a file is read, if not as it would be by itself."""

    sheet: str | None = None  # of a spreadsheet, by default the first that has rows
    encoding: str | None = None  # of text, by default detected
    min_count: int = 0  # of a search log: fewer clicks are no evidence
    max_unusable: float | None = None  # share of the rows that may be left out
    split: str | None = None  # of a folder with judgements


class Input(NamedTuple):
    """One thing to read: its display name, its kind, and its files (one, except for `arrow`, twins and documents)."""

    name: str
    kind: str
    paths: tuple[Path, ...]
    members: tuple[str, ...] = ()  # of a zip file
    rows: object = None  # of the kind `memory`
    how: How = How()
    unread: tuple[Unread, ...] = ()  # other files of the same folder
    folder: Path = Path()  # that documents are named from

    @property
    def files(self) -> tuple[File, ...]:
        """The files to open: the paths, or the members of the zip file."""
        return tuple(zipfile.Path(self.paths[0], member) for member in self.members) or self.paths

    @property
    def place_name(self) -> str:
        """What a row is called in messages: a line, a passage or a row."""
        return "line" if self.kind in (*LINE_KINDS, TWINS) else PASSAGE if self.kind == DOCUMENTS else "row"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files that rows are from."""
        return tuple(map(str, self.paths)) if self.kind == DOCUMENTS else (self.name,)


def named(path: str | Path, **how: Any) -> str:
    """A name that says how it is read, besides what it says already.

    >>> named("book.xlsx", sheet="2024", encoding=None)
    'book.xlsx?sheet=2024'
    """
    given = {name: value for name, value in how.items() if value not in (None, 0)}
    if not given:
        return str(path)
    if "max_unusable" in given:
        given["max_unusable"] = f"{_share(str(given['max_unusable'])):g}"
    file, before = split_name(path)
    stated = {name: value for name, value in before._asdict().items() if value not in (None, 0)}
    return f"{file}?{urlencode({**stated, **given})}"


def cleaning_options(name: str, request: ShapeRequest) -> tuple[str, ...]:
    """The arguments of a command that reads the same rows."""
    file, how = split_name(name)
    asked = {"sheet": how.sheet, "encoding": how.encoding, "min-count": how.min_count or None}
    stated = [text for flag, value in asked.items() if value is not None for text in (f"--{flag}", str(value))]
    return (named(file, split=how.split), *request.options, *stated)


def split_name(path: str | Path) -> tuple[str, How]:
    """The file that a name names, and how it says it is read."""
    text = str(path)
    name, mark, query = text.rpartition("?")
    pairs = parse_qsl(query) if mark and "=" in query else []
    if not name or not pairs or _exists(text):
        return text, How()
    readers: dict[str, Any] = {"sheet": str, "encoding": known, "min_count": int, "max_unusable": _share, "split": str}
    if wrong := next((key for key, _ in pairs if key not in readers), None):
        raise InputError(
            text, f"{wrong!r} is no way to read a file", f"one of {', '.join(readers)}", "correct the name"
        )
    try:
        return name, How(**{key: readers[key](value) for key, value in pairs})
    except ValueError as error:
        raise InputError(text, f"cannot parse {query!r} ({error})", "a number", "correct it") from None


def _share(text: str) -> float:
    value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= value <= 1:
        expected = "a share of the rows from 0 to 1, or a percentage: 0.2 or 20%"
        raise InputError(option("max_unusable"), f"{text} is no share", expected, "correct it")
    return value


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def find_inputs(path: str | Path) -> list[Input]:
    """Return the inputs at a path, or of a name on the hub if there is no such path."""
    name, how = split_name(path)
    inputs = [entry._replace(how=how) for entry in _inputs_at(name)]
    _refuse_idle(name, how, inputs)
    return inputs


def _refuse_idle(name: str, how: How, inputs: Sequence[Input]) -> None:
    """Refuse a way to read that has no meaning for what is read."""
    kinds = {entry.kind for entry in inputs}
    if how.sheet and SHEET not in kinds:
        raise InputError(option("sheet"), f"{name} is no spreadsheet", ".xlsx, .xls or .ods", "leave it out")
    if how.encoding and not kinds & {*TEXT_KINDS, TWINS, DOCUMENTS}:
        raise InputError(option("encoding"), f"{name} is no text file", ".txt, .csv, .jsonl ...", "leave it out")
    if how.split and BEIR not in kinds:
        raise InputError(name, "it has no splits", "a folder with corpus, queries and qrels", "leave the split out")


def _inputs_at(path: str) -> list[Input]:
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
    if exists and _is_document(local, kind):
        return [_document(local)]
    if exists and not kind:
        problem = f"unsupported extension {local.suffix!r}"
        raise InputError(str(path), problem, EXPECTED, "rename or convert the file")
    if exists and kind:
        return [_rows_of(local, kind)]
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
    if kind in SPREADSHEETS and not name.endswith(".gz"):
        return SHEET
    return kind if kind in LINE_KINDS or name.endswith(".parquet") else None


def _rows_of(path: Path, kind: str) -> Input:
    if kind == SHEET:
        _need("python_calamine", str(path))
    return Input(str(path), kind, (path,))


def _is_document(path: Path, kind: str | None) -> bool:
    """Whether a file is read as a document; a .txt file is one if its lines are those of wrapped paragraphs."""
    form = format_of(path.name)
    return form is not None and (form != "txt" or kind is None or is_wrapped(head_of(path)))


def _document(path: Path) -> Input:
    if package := missing_package(str(format_of(path.name))):
        _need(package, str(path))
    return Input(str(path), DOCUMENTS, (path,), folder=path.parent)


def _need(package: str, where: str) -> None:
    if find_spec(package) is None:
        problem = f"the package {package.replace('_', '-')}, which reads such files, is not installed"
        raise MissingPart(where, problem, "", EXTRA)


def _check_regular(path: Path) -> None:
    """Refuse pipes, sockets and devices: they may never end, and data is read more than once."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        tests = {"a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK, "a device": stat.S_ISCHR}
        kind = next((name for name, test in tests.items() if test(mode)), "a special file")
        raise InputError(str(path), f"this is {kind}", "a regular file", "save the data to a file first")


def _folder(folder: Path) -> list[Input]:
    """Return what is in a folder, in the order of names: its documents together, then its data files.

    Texts beside data files that say what these are (README.md) are not read; .json files are often settings.
    """
    names, unread = files_in(folder)
    if {"state.json", "dataset_info.json"} <= {*names}:
        return [_saved(folder)]
    if "dataset_dict.json" in names:
        splits = ", ".join(sorted(split.parent.name for split in folder.glob("*/state.json"))[:MOST_SPLITS])
        problem = f"this saved data set has the splits {splits}"
        raise InputError(str(folder), problem, "one split", "give the folder of one split")
    if judged := judgements_in(names):
        return [Input(str(folder), BEIR, tuple(folder / name for name in judged))]
    documents, tables, more = _sorted(folder, names)
    unread = sorted([*(Unread(str(folder / name), why) for name, why in unread), *more])
    together = [Input(str(folder), DOCUMENTS, tuple(documents), folder=folder)] if documents else []
    inputs = [*together, *(Input(str(path), kind, (path,)) for path, kind in tables)]
    if not inputs:
        reasons = "; ".join(f"{name}: {why}" for name, why in unread[:SHOWN_UNREAD])
        raise InputError(
            str(folder), f"no documents or data files here{reasons and f' ({reasons})'}", EXPECTED, NO_FILES
        )
    return [inputs[0]._replace(unread=tuple(unread)), *inputs[1:]]


def _sorted(folder: Path, names: Sequence[str]) -> tuple[list[Path], list[tuple[Path, str]], list[Unread]]:
    """The documents, the data files with their kinds, and the files that are neither."""
    documents, tables, unread = list[Path](), list[tuple[Path, str]](), list[Unread]()
    pages = frozenset(names)
    for name in names:
        path = folder / name
        kind, form = _kind(path), format_of(path.name)
        package = missing_package(form) if form else "python_calamine" if kind == SHEET else None
        if SOURCES.fullmatch(name) and SOURCES.sub(r"\1\2.html", name) in pages:
            unread.append(Unread(str(path), "the source of a page that is read"))
        elif JSON.search(path.name):
            unread.append(Unread(str(path), "often settings (by its own name it is read)"))
        elif package and find_spec(package) is None:
            unread.append(Unread(str(path), f"needs the package {package.replace('_', '-')}: {EXTRA}"))
        elif form and kind != "txt":
            documents.append(path)
        elif kind:
            tables.append((path, kind))
        else:
            unread.append(Unread(str(path), f"of the kind {path.suffix}" if path.suffix else "without an extension"))
    if tables and all(ABOUT.fullmatch(path.name) for path in documents):
        unread += [Unread(str(path), "about the data files beside it") for path in documents]
        documents = []
    lines = [path for path, kind in tables if kind == "txt"]
    if documents or any(is_wrapped(head_of(path)) for path in lines):
        documents = sorted([*documents, *lines])
        tables = [(path, kind) for path, kind in tables if kind != "txt"]
    return documents, tables, unread


def judgements_in(names: Sequence[str]) -> list[str]:
    """The corpus, the queries and the judgements of a folder in the form of BEIR; nothing for other folders."""
    tops = [next((name for name in names if name in (f"{part}.jsonl", f"{part}.jsonl.gz")), "") for part in BEIR_FILES]
    judged = [name for name in names if re.fullmatch(r"qrels/[^/]+\.tsv", name)]
    return [*tops, *judged] if all(tops) and judged else []


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
