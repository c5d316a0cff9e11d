"""Training sets: the training rows in the form that methods take, written to files that recipes name.

The rows of one shape form one training set. Rows in several languages are also written in a file for each language, so
that batches can be made of one language. Held-out rows, and the texts that `sentloom search MODEL` looks in, are
written beside them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sentloom.data.columns import sampled_texts
from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.languages import recognised, text_languages
from sentloom.data.shapes import COLUMNS, Shape, form_of, text_columns
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.encoder.lengths import Cut, covering_cut
from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.fitting.inputs import LANGUAGE_COLUMNS, FitInput
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.triplets import MOST_NEGATIVES
from sentloom.fitting.split import Split

SAMPLED = 2_000  # rows whose lengths are measured
MEMORY = 4_000_000_000  # bytes for the states of a training step
STATE = 64  # bytes of a token in training, for each unit of each layer, about
FEWEST_ROWS = 10  # training rows of an input
MOST_SEARCHED = 200_000  # texts that `sentloom search MODEL` looks in

FEWEST_EXAMPLES = 200  # of a language, for batches of its own: with fewer, the same rows meet too often
MOST_DETECTED = 50_000  # rows, in about five seconds; with more, a column must say the language


@dataclass(frozen=True)
class LanguagePart:
    """The training rows of one language, and how many examples batches are made of: triplets, for NLI."""

    language: str
    data: Dataset
    examples: int


@dataclass(frozen=True)
class LanguageFile:
    """A file of training rows in one language, and how many examples it has."""

    language: str  # "": unknown
    examples: int
    file: str


@dataclass(frozen=True)
class TrainingSet:
    """The training rows of one shape: how many, in which files, and what routes need to know of them."""

    shape: Shape
    rows: int
    files: tuple[str, ...]
    language: str | None = None  # of their first column
    length: int = 64  # tokens that texts are cut to, for training only
    tokens: float = 16.0  # of a row, on average, after that
    negatives: int = 1  # hard negatives of a row, at most
    passages: int = 0  # pairs of neighbouring passages in raw texts, about
    fitting: int = 1_000_000  # tokens whose states fit into memory together
    language_files: tuple[LanguageFile, ...] = ()  # the same rows, with one language per file

    @property
    def by_language(self) -> tuple[LanguageFile, ...]:
        """These files if batches may come from one of them: several languages, enough rows of each, no translations."""
        languages = {file.language for file in self.language_files} - {""}
        several = len(languages) > 1 and not form_of(self.shape).translates
        enough = all(file.examples >= FEWEST_EXAMPLES for file in self.language_files)
        return self.language_files if several and enough else ()

    def for_base(self, base: Encoder) -> "TrainingSet":
        """The same rows for another base, which may read fewer tokens at once."""
        length = min(self.length, base.tokens.max_length)
        return replace(self, length=length, fitting=tokens_in_memory(base))

    def joined(self, other: "TrainingSet") -> "TrainingSet":
        """Both together: rows of one shape from several files."""
        rows = self.rows + other.rows
        return TrainingSet(
            self.shape,
            rows,
            (*self.files, *other.files),
            self.language if self.language == other.language else None,
            max(self.length, other.length),
            (self.rows * self.tokens + other.rows * other.tokens) / max(1, rows),
            max(self.negatives, other.negatives),
            self.passages + other.passages,
            self.fitting,
            (*self.language_files, *other.language_files),
        )


def training_rows(fit_input: FitInput, split: Split, *, as_read: bool = False) -> Dataset:
    """The training rows of an input in the form that methods take, or as they were read; too few are refused."""
    rows = split.train if as_read else training_form(split.train)
    if len(rows) < FEWEST_ROWS:
        relevant = " with a relevance above 0" if rows.shape != split.train.shape else ""
        problem = f"{len(rows):,} training rows{relevant}"
        raise InputError(fit_input.name, problem, f"at least {FEWEST_ROWS}", "give more rows")
    return rows


def training_form(data: Dataset) -> Dataset:
    """Raw texts once each, scored pairs with a relevance as the pairs that are relevant; the rest stays as it is."""
    return handler(data).training_form(data)


def write_training_sets(
    inputs: Sequence[FitInput],
    rows: Sequence[Dataset],
    bases: Sequence[Encoder],
    folder: Path,
    by_language: Mapping[int, Sequence[LanguagePart]] | None = None,
) -> tuple[tuple[TrainingSet, ...], tuple[Cut, ...]]:
    """Write the training rows of each input; those of one shape form one training set. Also say how many texts are cut.

    `by_language` has the rows of those inputs that have several languages, by their numbers, which count from 1.
    """
    by_shape: dict[Shape, TrainingSet] = {}
    cuts = []
    for number, (fit_input, data) in enumerate(zip(inputs, rows, strict=True), 1):
        for place, part in enumerate(handler(data).training_parts(data)):
            rows_themselves = place == 0  # the others are what these contain besides
            path = training_file(folder, number, part)
            write(part, path)
            training_set, cut = _training_set(part, path, fit_input.language, bases)
            cuts += [cut] if rows_themselves else []
            spoken = _write_languages((by_language or {}).get(number, ()), path) if rows_themselves else []
            whole = LanguageFile(fit_input.language or "", training_set.rows, training_set.files[0])
            training_set = replace(training_set, language_files=tuple(spoken) or (whole,))
            known = by_shape.get(part.shape)
            by_shape[part.shape] = known.joined(training_set) if known else training_set
    return tuple(by_shape.values()), tuple(cuts)


def training_file(folder: Path, number: int, rows: Dataset) -> Path:
    """The file of the training rows of an input; inputs are numbered from 1."""
    return folder / f"{number}-{rows.shape}-train.parquet"


def _training_set(data: Dataset, path: Path, language: str | None, bases: Sequence[Encoder]) -> tuple[TrainingSet, Cut]:
    """The rows in a file, as the base that needs the most tokens for a sample of them reads them."""
    columns = {name: sampled_texts(data, name, SAMPLED) for name in text_columns(data.shape)}
    texts = [text for column_texts in columns.values() for text in column_texts]
    cut, mean = max((covering_cut(base, texts) for base in bases), key=lambda covered: covered[0].length)
    negatives = pc.max(pc.list_value_length(data.column("negatives"))).as_py() if "negatives" in columns else 1
    tokens = mean * (len(columns) - 1 + min(negatives, MOST_NEGATIVES) if "negatives" in columns else len(columns))
    passages = handler(data).passages(texts, len(data))
    files = (str(path.resolve()),)
    fitting = tokens_in_memory(bases[0])
    return TrainingSet(data.shape, len(data), files, language, cut.length, tokens, negatives, passages, fitting), cut


def tokens_in_memory(base: Encoder) -> int:
    """About how many tokens have states in training that fit into memory together."""
    return MEMORY // (STATE * base.backbone.width * base.backbone.num_layers)


def _write_languages(parts: Sequence[LanguagePart], path: Path) -> Iterator[LanguageFile]:
    """Write each part beside the file of all rows. Languages are numbered: their names may be anything."""
    for number, part in enumerate(parts, 1):
        own = path.with_name(f"{path.stem}-language-{number}.parquet")
        write(part.data, own)
        yield LanguageFile(part.language, part.examples, str(own.resolve()))


def cut_line(cut: Cut) -> str:
    """How many texts are cut in training, in words."""
    if not cut.cut:
        return f"training reads texts in full, up to {cut.length} tokens"
    return f"training reads up to {cut.length} tokens of a text, and {cut.cut / cut.texts:.1%} of the texts are longer"


def language_parts(fit_input: FitInput, rows: Dataset) -> list[LanguagePart]:
    """The training rows of each language, the largest first; none for raw text, or if only one language has enough.

    Rows of other languages, and rows whose language is unknown, go with the largest one.
    """
    examples = handler(rows).language_examples(rows)
    if examples is None:
        return []
    codes = row_languages(fit_input, examples)
    counts = Counter(filter(None, codes))
    large = [code for code, count in counts.most_common() if count >= FEWEST_EXAMPLES]
    if len(large) < 2:
        return []
    own = np.array([code if code in large else large[0] for code in _of_rows(rows, examples, codes)])
    plain = without_languages(rows)
    return [LanguagePart(code, plain.select(own == code), counts[code]) for code in large]


def row_languages(fit_input: FitInput, rows: Dataset, most: int = MOST_DETECTED) -> list[str]:
    """The language of each row: that of the column `language`, or else detected if the file has several; "": unknown.

    Empty if the file has a single language or too many rows to detect it, and for translations, which have two in every
    row.
    """
    if form_of(rows.shape).translates:
        return []
    columns = [name for name in LANGUAGE_COLUMNS if name in rows.table.column_names]
    if columns:
        return [str(code or "").strip().lower() for code in rows.column(columns[0]).to_pylist()]
    if len(rows) > most or len(recognised(next(iter(fit_input.column_shares.values())))) < 2:
        return []
    return [code or "" for code in text_languages(first_texts(rows))]


def first_texts(rows: Dataset) -> list[str]:
    """The texts of the first column."""
    texts: list[str] = rows.column(COLUMNS[rows.shape][0]).to_pylist()
    return texts


def _of_rows(rows: Dataset, examples: Dataset, codes: Sequence[str]) -> Sequence[str]:
    """The language of each row, from those of the examples made of them; rows of one premise stay together."""
    if examples is rows:
        return codes
    known = dict(zip(first_texts(examples), codes, strict=True))
    return [known.get(text, "") for text in first_texts(rows)]


def without_languages(rows: Dataset) -> Dataset:
    """The rows with only what methods take."""
    extra = [name for name in LANGUAGE_COLUMNS if name in rows.table.column_names]
    return rows.derive(rows.table.drop_columns(extra), "without languages") if extra else rows


def write_held_out(number: int, split: Split, folder: Path) -> None:
    """Write the held-out rows of an input, so that two fits can be compared later on rows that neither has seen."""
    for side, data in (("validation", split.validation), ("test", split.test)):
        path = folder / f"{number}-{data.shape}-{side}.parquet"
        if len(data):
            write(handler(data).stored(data), path)
        else:
            path.unlink(missing_ok=True)  # of an earlier fit


def write_search_corpus(inputs: Sequence[FitInput], more: Sequence[str], path: Path) -> None:
    """Write the texts that `sentloom search MODEL` looks in: answers, graded documents, the first texts of other rows.

    `more` are texts that the user wants to be searched as well. The column `of` has the numbers of the inputs that a
    text is from, which count from 1, or 0 for `more`.
    """
    inputs_of: dict[str, list[str]] = {text: ["0"] for text in more}
    for number, fit_input in enumerate(inputs, 1):
        column = handler(fit_input.data).searched_column
        for text in dict.fromkeys(fit_input.data.column(column).slice(0, MOST_SEARCHED).to_pylist()):
            inputs_of.setdefault(text, []).append(str(number))
    texts, of = list(inputs_of)[:MOST_SEARCHED], [" ".join(numbers) for numbers in inputs_of.values()][:MOST_SEARCHED]
    with new_file(path) as part:
        pq.write_table(pa.table({"text": texts, "of": of}), part, write_page_checksum=True)
