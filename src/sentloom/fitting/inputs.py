"""The inputs: read every file, drop repeated rows, describe what is there, and refuse what is too little."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sentloom.data.columns import sampled_texts
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.documents.structure import PAIRS as MINED_PAIRS
from sentloom.data.hygiene.cleaning import CleanSettings, clean
from sentloom.data.hygiene.inspection import Inspection, inspect
from sentloom.data.hygiene.languages import (
    SAMPLED,
    UNDETERMINED,
    language_name,
    language_shares,
    main_language,
    recognised,
    shares_in_words,
)
from sentloom.data.inputs import find_inputs, hub_name
from sentloom.data.layout import one_label_each
from sentloom.data.limits import FITTING, STRICT, Allowance, listed
from sentloom.data.shapes import COLUMNS, TITLE, Shape, form_of, squash, text_columns
from sentloom.engine.rows import InputFile
from sentloom.errors import InputError, option
from sentloom.fitting.clusters import Keys, sentences
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.documents import PASSAGES
from sentloom.fitting.shapes.nli import FEWEST_TRIPLETS
from sentloom.fitting.shapes.texts import TEXTS

if TYPE_CHECKING:
    from sentloom.fitting.request import Log, Request  # which imports PyTorch

SHOWN_LABELS = 5
# Columns that are read if they are there: they connect rows, or say the language of each.
ID_COLUMNS = ("docid", "documentid", "passageid", "qid", "questionid", "threadid")
BESIDES = tuple(dict.fromkeys((*TEXTS.besides, *PASSAGES.besides)))  # columns that are read in case they are needed
LANGUAGE_COLUMNS = ("language", "lang")
KIND = re.compile(r"^[a-z]+:")  # what a file is scored as: retrieval:FILE
RECIPES = (".yaml", ".yml")  # files that are no data


@dataclass(frozen=True)
class Earlier:
    """The rows of an earlier fit, by hashes of their texts: what it trained on, and what it tested with."""

    trained: Keys
    tested: Keys


@dataclass(frozen=True)
class FitInput:
    """One file of the user. `data` is cleaned and without repeated rows; the inspection is of the file as read."""

    name: str
    data: Dataset
    inspection: Inspection
    column_shares: Mapping[str, Mapping[str, float]]  # for each text column: languages and their shares of its texts
    groups: tuple[str, ...] = ()  # columns besides the texts that connect rows
    label_column: str = ""  # which of several label columns of one file this input has
    read: int = 0  # rows in the file, or in memory
    lost: Mapping[str, int] = field(default_factory=dict)  # reason -> rows that are not in `data`
    earlier: Earlier | None = None  # among the rows, if a model is continued

    @property
    def languages(self) -> dict[str, str | None]:
        """The language of each text column; None if it is not recognised or several are mixed."""
        return {column: main_language(shares) for column, shares in self.column_shares.items()}

    @property
    def language(self) -> str | None:
        """The language of the first text column."""
        return next(iter(self.languages.values()))

    @property
    def shares(self) -> dict[str, float]:
        """Languages and their shares of the texts of all columns, the largest first, undetermined texts last."""
        known = [shares for shares in self.column_shares.values() if shares]
        codes = dict.fromkeys(code for shares in known for code in shares)
        means = {code: sum(shares.get(code, 0.0) for shares in known) / len(known) for code in codes}
        return dict(sorted(means.items(), key=lambda item: (item[0] == UNDETERMINED, -item[1])))

    @property
    def words(self) -> float:
        """The median length of the first text column."""
        return self.inspection.lengths[0].distribution.median


@dataclass(frozen=True)
class InputSource:
    """Where an input comes from, and how to read it if its columns do not say."""

    name: str
    shape: Shape | None = None
    columns: Mapping[str, str | int] | None = None
    label: str = ""  # what it is called in messages, if not by its name
    label_column: str = ""  # if several label columns are named, each is a source of its own
    lost: Mapping[str, int] = field(default_factory=dict)  # rows in memory that were left out before: reason -> rows


def sources_of(request: "Request") -> list[InputSource]:
    """The files that the user named, each once for every label column."""
    columns = one_label_each(request.columns)
    if len(columns) == 1:
        files = [request.in_memory.get(name, InputFile(name)) for name in request.data]
        return [
            InputSource(file.name, request.shape, request.columns, file.label, file.label_column, file.lost)
            for file in files
        ]
    return [
        InputSource(name, request.shape, roles, f"{request.label(name)}: {roles['label']}", str(roles["label"]))
        for name in request.data
        for roles in columns
        if roles
    ]


def searched_besides(inputs: Sequence[FitInput]) -> list[str]:
    """The passages of documents, which titles, headings and links are to find their own among, if these decide."""
    handlers = [handler(fit_input.data) for fit_input in inputs]
    if not max(handlers, key=lambda own: own.trust).by_structure:
        return []
    own = [fit_input.data for fit_input, kind in zip(inputs, handlers, strict=True) if kind is PASSAGES]
    return [text for data in own for text in data.column("text").to_pylist()]


def refuse_missing(name: str) -> None:
    """Refuse a name that can only be that of a file, and is not there; `retrieval:FILE` names a file too."""
    file = name if Path(name).exists() else KIND.sub("", name)
    if Path(file).suffix and not Path(file).exists() and hub_name(file) is None:
        find_inputs(file)  # which refuses it, unless it names several files


def read_inputs(sources: Sequence[InputSource], request: "Request", log: "Log") -> list[FitInput]:
    """Read and describe every input, without PyTorch; refuse those that nothing can be learned from."""
    allow = STRICT if request.strict else FITTING
    inputs = look(sources, allow, as_pairs=request.recipe is None, groups=(*ID_COLUMNS, *request.group))
    refuse_unknown_groups(request.group, inputs)
    if request.continue_:
        from sentloom.fitting.continuing import with_earlier_rows  # which imports PyTorch

        inputs = with_earlier_rows(inputs, request.folder_of(request.continue_), log)
    for fit_input in inputs:
        refuse_too_little(fit_input)
        for line in describe_input(fit_input):
            log(line)
    return inputs


def look(
    sources: Sequence[InputSource], allow: Allowance = FITTING, *, as_pairs: bool = True, groups: Sequence[str] = ()
) -> list[FitInput]:
    """Read, inspect and clean every input; unusable rows are left out, up to what `allow` tolerates.

    Pairs and translations with two equal sides are left out too. With `as_pairs`, NLI data in which few premises have
    both an entailment and a contradiction is reduced to its entailments, and texts with titles are pairs of both.
    """
    inputs: list[FitInput] = []
    for source in sources:
        titles = as_pairs and TITLE not in groups  # a column that connects rows stays one
        read = _open(source, groups, allow, titles)
        used = {other.label_column for other in sources if other.name == source.name}  # by the inputs of the same file
        for part, rows in _parts(source, read, titles):
            fit_input = _looked_at(part, rows, groups, as_pairs)
            if not source.label_column:
                _refuse_same_rows(fit_input.name, fit_input.data, inputs)
            ignored = tuple(column for column in fit_input.data.ignored if column not in used)
            inputs.append(replace(fit_input, data=replace(fit_input.data, ignored=ignored)))
    return inputs


def _parts(source: InputSource, read: Dataset, titles: bool) -> Iterator[tuple[InputSource, Dataset]]:
    """The rows of a source, and the pairs that the structure of documents gives, which are an input of their own."""
    yield source, read
    if titles and (mined := handler(read).mined(read)) is not None:
        yield replace(source, label=f"{source.label or source.name}: {MINED_PAIRS}", lost={}), mined


def _looked_at(source: InputSource, read: Dataset, groups: Sequence[str], as_pairs: bool) -> FitInput:
    """The description of an input, and its rows after cleaning."""
    joined = handler(read).joined(read) if as_pairs and TITLE not in groups else read
    inspection, (data, report) = inspect(read), clean(joined, CleanSettings())
    data = handler(data).usable(data, inspection) if as_pairs else data
    shares = {column: _language_shares(data, column) for column in text_columns(data.shape)}
    connecting = tuple(name for name in groups if name in data.table.column_names)
    count = len(read) + sum(read.lost.values()) + sum(source.lost.values())
    lost = Counter(source.lost) + Counter(data.lost) + Counter(report.reasons)
    name = source.label or source.name
    return FitInput(name, data, inspection, shares, connecting, source.label_column, count, dict(lost))


def _open(source: InputSource, groups: Sequence[str], allow: Allowance, titles: bool) -> Dataset:
    """The rows of a source; texts with their titles, if these are wanted."""

    def open_with(keep: Sequence[str]) -> Dataset:
        return open_data(source.name, shape=source.shape, columns=source.columns, keep=keep, allow=allow)

    groups = (*groups, *LANGUAGE_COLUMNS)
    data = open_with((*groups, *BESIDES))
    besides = handler(data).besides if titles else ()
    unused = [name for name in BESIDES if name in data.table.column_names and name not in (*groups, *besides)]
    roles = [squash(own) for names in data.used.values() for own in names.split(", ")]
    ignored = (*data.ignored, *(name for name in unused if name not in roles))
    return replace(data, table=data.table.drop_columns(unused), ignored=ignored) if unused else data


def refuse_unknown_groups(groups: Sequence[str], inputs: Sequence[FitInput]) -> None:
    """Every column that the user groups rows by must be in some input."""
    known = [name for fit_input in inputs for name in fit_input.groups]
    for name in groups:
        if name not in known:
            datas = [fit_input.data for fit_input in inputs]
            others = dict.fromkeys(column for data in datas for column in (*data.used.values(), *data.ignored))
            problem = f"there is no column {name!r} in {' or '.join(fit_input.name for fit_input in inputs)}"
            raise InputError(option("group"), problem, f"one of {listed([*others])}", "correct the name")


def _refuse_same_rows(name: str, data: Dataset, before: Sequence[FitInput]) -> None:
    """Held-out rows that count twice would make a result look more certain than it is."""
    if same := [other.name for other in before if other.data.sha256 == data.sha256]:
        raise InputError(name, f"it has the same rows as {same[0]}", "different data", "name it once")


def _language_shares(data: Dataset, column: str) -> dict[str, float]:
    return language_shares(sampled_texts(data, column, SAMPLED)) if len(data) else {}


def refuse_too_little(fit_input: FitInput) -> None:
    """Refuse an input that nothing can be learned from or shown on."""
    hashed, noun, count = sentences(fit_input.data), form_of(fit_input.data.shape).noun, fit_input.inspection.rows
    rows, texts = hashed.distinct_rows, len(np.unique(hashed.draws))
    least_rows, least_texts = handler(fit_input.data).least_rows, handler(fit_input.data).least_texts
    if rows < least_rows:
        problem = f"{count:,} {noun}, {rows:,} of them different" if rows < count else f"{count:,} {noun}"
        expected = f"at least {least_rows} different ones: some are held out for the test, the rest train"
        raise InputError(fit_input.name, problem, expected, _give_more(rows, count, least_rows))
    if texts < least_texts:
        problem = f"{rows:,} {noun} with {texts:,} different texts on one side"
        expected = f"at least {least_texts}, so that some of them can be held out"
        fix = f"add rows with at least {least_texts - texts:,} other texts on that side"
        raise InputError(fit_input.name, problem, expected, fix)
    _refuse_uniform(fit_input)


def _give_more(rows: int, count: int, least: int) -> str:
    repeated = "repeated rows and rows whose two sides are the same text do not count; " if rows < count / 2 else ""
    return f"{repeated}add at least {least - rows:,} more; a few thousand rows are a good start"


def _refuse_uniform(fit_input: FitInput) -> None:
    """A single class, a single score, or no entailment says nothing about which texts belong together."""
    if lack := handler(fit_input.data).lack(fit_input.inspection):
        fix = "label more rows, or give the texts alone as a file of sentences"
        raise InputError(fit_input.name, lack.problem, lack.expected, fix)


def describe_input(fit_input: FitInput) -> list[str]:
    """What an input holds: one line with the main facts, and one more for everything else worth knowing."""
    inspection, data = fit_input.inspection, fit_input.data
    lines = [", ".join([_main_facts(fit_input), _median(inspection), _repeated(inspection)])]
    if len(data) < inspection.rows and not _is_entailments(fit_input):
        twins = " and rows whose two sides are the same text" if form_of(data.shape).is_two_sided else ""
        lines.append(f"{len(data):,} rows are used, without repeated rows{twins}")
    return [*lines, *_notes(fit_input)]


def _main_facts(fit_input: FitInput) -> str:
    count, data = fit_input.inspection.rows, fit_input.data
    noun = "passages" if handler(data) is PASSAGES else form_of(data.shape).noun
    return f"{fit_input.name}: {count:,} {noun}{_columns(data)}, {_languages(fit_input)}"


def _is_entailments(fit_input: FitInput) -> bool:
    """Whether NLI data was reduced to its entailments; the other rows are reported as skipped."""
    return bool(fit_input.inspection.labels) and not form_of(fit_input.data.shape).is_judged


def _columns(data: Dataset) -> str:
    """The names of the columns in the file, where they say anything."""
    return f" ({', '.join(data.used.values())})" if len(COLUMNS[data.shape]) > 1 and data.used else ""


def _languages(fit_input: FitInput) -> str:
    """The language of the columns, such as "English and German"; for mixed languages their shares."""
    if any(recognised(shares) and main_language(shares) is None for shares in fit_input.column_shares.values()):
        shares, named = fit_input.shares, shares_in_words(fit_input.shares)
        mixed = len(shares) > 1 and recognised(shares) and main_language(shares) is None
        return f"mixed languages: {named}" if mixed else f"mostly {named}"
    known = dict.fromkeys(code for code in fit_input.languages.values() if code)
    return " and ".join(language_name(code) for code in known) or language_name(None)


def _median(inspection: Inspection) -> str:
    medians = dict.fromkeys(f"{column.distribution.median:.0f}" for column in inspection.lengths)
    return f"median {' and '.join(medians)} words"


def _repeated(inspection: Inspection) -> str:
    if not inspection.duplicate_rows:
        return "no repeated rows"
    return f"{percent(inspection.duplicate_rows / inspection.rows)} repeated rows"


def percent(share: float) -> str:
    """A share in words."""
    return f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _notes(fit_input: FitInput) -> Iterator[str]:
    inspection, near = fit_input.inspection, fit_input.inspection.near_duplicates
    if close := near.repeats - (inspection.duplicate_rows if near.whole else 0):
        of = "the rows" if near.whole else f"a sample of {near.sampled:,} rows"
        what = "nearly repeat another one" if near.whole else "repeat or nearly repeat another one"
        yield f"{percent(close / near.sampled)} of {of} {what}"
    if inspection.labels:
        shown = ", ".join(f"{label} {count:,}" for label, count in list(inspection.labels.items())[:SHOWN_LABELS])
        more = len(inspection.labels) - SHOWN_LABELS
        yield f"labels: {shown}" + (f" and {more:,} more" if more > 0 else "")
        if _is_entailments(fit_input):
            few = f"fewer than {FEWEST_TRIPLETS} entailments have a contradiction of the same premise"
            yield f"{few}, so only the entailments are used, as pairs"
    if inspection.scores:
        yield f"scores from {inspection.scores.least:g} to {inspection.scores.most:g}"
    if fit_input.data.ignored:
        yield f"columns not used: {listed(fit_input.data.ignored)}"
    if not handler(fit_input.data).by_structure:  # of files that are listed with their passages
        yield from (line.strip() for line in fit_input.data.reading)
    yield from fit_input.data.notes
    yield from describe_unusable(fit_input)
    yield from (f"skipped: {count:,} {what}" for what, count in fit_input.data.skipped.items())
    faults = (fault for fault in inspection.findings if fault.example)
    yield from (f"{fault.what}: {fault.rows:,} rows, first at {fault.example}" for fault in faults)


def describe_unusable(fit_input: FitInput) -> list[str]:
    """How many rows cannot be used, why, and where the first of them are."""
    data = fit_input.data
    if not data.left_out:
        return []
    whole = data.left_out + fit_input.inspection.rows
    return [
        f"{data.left_out:,} of {whole:,} rows cannot be used and are left out: {'; '.join(map(str, data.irregular))}"
    ]
