"""The seven shapes of data, and the names of columns that are commonly used for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import pyarrow as pa

from sentloom.errors import InputError


class Shape(StrEnum):
    """What a row of a data set is.

    >>> from sentloom import read
    >>> read([("A man sleeps.", "A man rests.", 4.5)]).shape is Shape.SCORED_PAIRS
    True
    """

    TEXTS = "texts"
    PAIRS = "pairs"
    TRIPLETS = "triplets"
    SCORED_PAIRS = "scored-pairs"
    NLI = "nli"
    PARALLEL = "parallel"
    CLASSIFICATION = "classification"


class Kind(StrEnum):
    """What the cells of a canonical column hold."""

    TEXT = "text"
    NEGATIVES = "negatives"  # a list: one hard negative, several or none
    SCORE = "score"
    LABEL = "label"
    NLI_LABEL = "nli-label"


# Names are compared ignoring case, spaces, "_" and "-": "Sentence_1" is sentence1, "hard_neg" is hardneg.
TEXT_NAMES = ("text", "texts", "sentence", "sentences", "content")
CLASS_NAMES = ("label", "labels", "class", "category")
# Names that are less clear: used where there is none of those above, and the guess is said.
LIKELY_TEXTS = (
    *("message", "comment", "utterance"),
    *("nachricht", "anfrage", "satz", "inhalt", "beschreibung", "kommentar"),
)
LIKELY_CLASSES = ("kategorie", "klasse", "thema", "team", "abteilung", "intent", "topic")
CLICKED = ("clicked", "clickedtext", "clickedtitle", "clickeddocument", "geklickt")
COUNT_NAMES = ("count", "clicks", "frequency", "anzahl", "klicks")
COUNT = "count"  # a column beside a query and what was clicked: how often
# Of a pair; a category is not one: it may belong to a FAQ.
LABEL_NAMES = ("label", "labels", "goldlabel", "isduplicate")
SCORE_NAMES = ("score", "scores", "similarity", "similarityscore", "relatednessscore", "relevance", "grade")
TITLE = "title"  # a role beside `text`
NEGATIVE_NAME = re.compile(r"(hard)?neg(ative)?s?\d*")
# Columns that form a pair: any name on the left with any on the right.
Couple = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Form:
    """What the rows of a shape are: how they are read, and what their texts are to each other.

    What `fit` does with them is in `fitting.shapes`.
    """

    columns: Mapping[str, Kind]  # the canonical ones, in order
    noun: str  # what rows are called, in the plural
    expected: str  # the columns of a file, in words
    couples: tuple[Couple, ...] = ()  # names of two sentence columns that mean this shape on their own
    answers: bool = False  # whether the second text is what the first one looks for
    translates: bool = False  # whether the second text says the same in another language

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that hold sentences."""
        return tuple(name for name, kind in self.columns.items() if kind in (Kind.TEXT, Kind.NEGATIVES))

    @property
    def sides(self) -> int:
        """How many sentences a row has besides hard negatives."""
        return sum(kind is Kind.TEXT for kind in self.columns.values())

    @property
    def is_judged(self) -> bool:
        """Whether a score or a label says how the texts belong together, or what a text is about."""
        return any(kind not in (Kind.TEXT, Kind.NEGATIVES) for kind in self.columns.values())

    @property
    def is_two_sided(self) -> bool:
        """Whether two texts belong together, and there is nothing else in a row."""
        return len(self.columns) == self.sides == 2


TEXTS = Form({"text": Kind.TEXT}, "sentences", "a column of texts: text or sentence")
PAIRS = Form(
    {"anchor": Kind.TEXT, "positive": Kind.TEXT},
    "pairs",
    "two columns that belong together, such as anchor and positive or question and answer",
    couples=(
        (
            ("anchor", "query", "question"),
            ("positive", "positives", "pos", "answer", "passage", "document", "response", "sentence"),
        ),
        (("frage",), ("antwort",)),
        (("query", "suchanfrage", "anfrage"), CLICKED),
        (("sentence1",), ("sentence2",)),
        (("sentencea",), ("sentenceb",)),
        (("text1",), ("text2",)),
        (("question1",), ("question2",)),
        (("sent0",), ("sent1",)),
        (("sent1",), ("sent2",)),
        (("title",), ("body", "abstract")),
        (("titel", "betreff"), ("text", "inhalt", "beschreibung", "nachricht")),
    ),
    answers=True,
)
TRIPLETS = Form(
    {"anchor": Kind.TEXT, "positive": Kind.TEXT, "negatives": Kind.NEGATIVES},
    "triplets",
    "the columns anchor, positive and negative (or negative_1, negative_2 ...)",
    answers=True,
)
SCORED_PAIRS = Form(
    {"sentence1": Kind.TEXT, "sentence2": Kind.TEXT, "score": Kind.SCORE},
    "scored pairs",
    "the columns sentence1, sentence2 and score",
)
NLI = Form(
    {"premise": Kind.TEXT, "hypothesis": Kind.TEXT, "label": Kind.NLI_LABEL},
    "NLI pairs",
    "the columns premise, hypothesis and label",
    couples=((("premise",), ("hypothesis",)),),
)
PARALLEL = Form(
    {"source": Kind.TEXT, "target": Kind.TEXT},
    "translated sentences",
    "the columns source and target",
    couples=((("source",), ("target",)), (("src",), ("tgt", "trg"))),
    translates=True,
)
CLASSIFICATION = Form({"text": Kind.TEXT, "label": Kind.LABEL}, "labelled texts", "the columns text and label")


def form_of(shape: Shape) -> Form:
    """Return what the rows of a shape are."""
    match shape:
        case Shape.TEXTS:
            return TEXTS
        case Shape.PAIRS:
            return PAIRS
        case Shape.TRIPLETS:
            return TRIPLETS
        case Shape.SCORED_PAIRS:
            return SCORED_PAIRS
        case Shape.NLI:
            return NLI
        case Shape.PARALLEL:
            return PARALLEL
        case Shape.CLASSIFICATION:
            return CLASSIFICATION
        case _:
            assert_never(shape)


COLUMNS: dict[Shape, tuple[str, ...]] = {shape: tuple(form_of(shape).columns) for shape in Shape}
KINDS: dict[str, Kind] = {name: kind for shape in Shape for name, kind in form_of(shape).columns.items()}
COUPLES: dict[Shape, tuple[Couple, ...]] = {shape: form_of(shape).couples for shape in Shape if form_of(shape).couples}
KNOWN_NAMES = [
    *(*TEXT_NAMES, *CLASS_NAMES, *LABEL_NAMES, *SCORE_NAMES, "negative"),
    *(name for families in COUPLES.values() for couple in families for side in couple for name in side),
]


def arrow_type(column: str) -> pa.DataType:
    """Return the Arrow type of a canonical column."""
    kind = KINDS[column]
    match kind:
        case Kind.NEGATIVES:
            return pa.list_(pa.large_string())
        case Kind.SCORE:
            return pa.float64()
        case Kind.TEXT | Kind.LABEL | Kind.NLI_LABEL:
            return pa.large_string()  # which has 64-bit offsets: a column of ten million rows exceeds 2 GB
        case _:
            assert_never(kind)


def text_columns(shape: Shape) -> tuple[str, ...]:
    """Return the canonical columns that hold sentences."""
    return form_of(shape).texts


def squash(name: object) -> str:
    """Normalise a name: without case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", str(name)).casefold()


def as_shape(shape: str | None) -> Shape | None:
    """Return the shape of this name; None and "" mean: infer it."""
    if not shape:
        return None
    if shape not in [*Shape]:
        raise InputError("shape", f"{shape!r} is unknown", f"one of {', '.join(Shape)}", "correct it, or leave it out")
    return Shape(shape)
