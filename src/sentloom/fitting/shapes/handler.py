"""What a shape of data has to say for itself, and what most shapes say."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.inspection import Inspection
from sentloom.data.shapes import COLUMNS, Form, Kind, Shape, form_of
from sentloom.encoder.tokens import Role
from sentloom.evaluation.task import Task
from sentloom.evaluation.user_tasks import Corpus, TaskKind, data_task

if TYPE_CHECKING:  # which use the handlers
    from sentloom.fitting.split import Split
    from sentloom.fitting.tasks import HeldOut
    from sentloom.fitting.training_sets import TrainingSet

PROBE = {"preset": "fast"}  # the classifier on the vectors of labelled rows
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Lack:
    """Why nothing can be learned from an input, and what would be needed."""

    problem: str
    expected: str


@dataclass(frozen=True)
class Training:
    """A route of one training stage: its name, what it teaches, and the settings of the stage."""

    name: str
    why: str
    settings: Mapping[str, Any]
    data: "TrainingSet | None" = None  # what it reads, if not the whole training set


@dataclass(frozen=True)
class Matching:
    """Held-out texts, the texts that they are matched with, and which matches are right."""

    queries: Sequence[str]
    documents: Sequence[str]
    roles: tuple[Role, Role]
    is_right: Callable[[int, int], bool]  # of a query and a document, by their numbers


@dataclass(frozen=True)
class Handler(ABC):
    """What `fit` does with the rows of one shape. A shape overrides what it does otherwise."""

    shape: Shape
    place: int  # in the order of training: raw text first, and last what matters most
    labelled: bool = True  # whether people said what belongs together
    by_structure: bool = False  # whether they are pairs that the structure of documents gave: they decide if need be
    searches: bool = False  # whether held-out rows look for texts
    has_queries: bool = False  # whether the first text is a query, which may have a prompt of its own
    lacks_negatives: bool = False  # so that they are mined, or a teacher ranks candidates
    divided_by_first: bool = False  # whether the first text decides where rows go, however often it occurs
    task_kind: TaskKind | None = None  # of held-out rows; None: what `evaluate` asks about the shape
    value_column: str = ""  # whose values must differ among held-out rows
    besides: tuple[str, ...] = ()  # columns that are read if they are there
    least_rows: int = 60  # distinct ones: 25 of them test, and the others are enough to learn a little from
    least_texts: int = 40  # distinct ones in the column that rows are split by

    @property
    def form(self) -> Form:
        """What the rows are."""
        return form_of(self.shape)

    @property
    def trust(self) -> int:
        """How far held-out rows are believed: raw text least, and what people wrote most."""
        return 0 if not self.labelled else 1 if self.by_structure else 2

    @property
    def has_labels(self) -> bool:
        """Whether batches are balanced over labels, so that they come from one label column."""
        return Kind.LABEL in self.form.columns.values()

    # Reading

    def joined(self, data: Dataset) -> Dataset:
        """The rows with what was read besides, before they are cleaned."""
        return data

    def mined(self, data: Dataset) -> Dataset | None:
        """Pairs that the structure of the rows gives besides; None if there are none."""
        return None

    def usable(self, data: Dataset, inspection: Inspection) -> Dataset:
        """The rows after cleaning, in another shape if they are good for nothing in their own."""
        return data

    def lack(self, inspection: Inspection) -> Lack | None:
        """Why labels or scores say nothing; None if they do."""
        return None

    # Training

    def training_form(self, data: Dataset) -> Dataset:
        """The rows as methods take them."""
        return data

    def training_parts(self, rows: Dataset) -> list[Dataset]:
        """What is learned from rows in that form."""
        return [rows]

    def language_examples(self, rows: Dataset) -> Dataset | None:
        """What batches of one language are made of; None: there are none."""
        return rows

    def passages(self, sample: Sequence[str], rows: int) -> int:
        """About how many pairs of neighbouring passages this number of rows has, by a sample of the texts."""
        return 0

    @abstractmethod
    def main(self, data: "TrainingSet") -> Training:
        """What is trained first."""

    def others(self, data: "TrainingSet") -> Sequence[Training]:
        """What else may be better."""
        return ()

    # Held-out rows

    def stored(self, data: Dataset) -> Dataset:
        """Held-out rows as they are written, so that they are read again for what they are."""
        return data

    def candidates(self, data: Dataset) -> list[str]:
        """The texts that rows may find."""
        return []

    def corpus(self, split: "Split", more: Sequence[str], most: int) -> Corpus | None:
        """What held-out rows search besides their own texts, at most `most` candidates; None if they search nothing."""
        return None

    def document_count(self, split: "Split", more: Sequence[str]) -> int | None:
        """How many candidates there are, of which a task may search a sample."""
        return None

    def tasks(self, name: str, data: Dataset, corpus: Corpus | None) -> tuple[Task, ...]:
        """What held-out rows ask."""
        return (data_task(self.task_kind, name, name, data, PROBE, corpus),)

    def probe(self, name: str, data: Dataset, corpus: Corpus) -> Task | None:
        """A classifier that is trained on the corpus, which decides nothing."""
        return None

    def related(self, data: Dataset) -> Pairs:
        """Pairs that mean much the same; none if the rows say nothing about pairs."""
        left, right = (data.column(name).to_pylist() for name in COLUMNS[data.shape][:2])
        return list(zip(left, right, strict=True))

    def matching(self, part: "HeldOut", split: "Split | None", most: int) -> Matching | None:
        """What a threshold of the cosine is chosen by; None if rows do not say which texts match."""
        return None

    @property
    def searched_column(self) -> str:
        """The column that `sentloom search` looks in."""
        return COLUMNS[self.shape][1 if self.form.answers else 0]

    @property
    def shown_columns(self) -> tuple[str, str]:
        """A column of queries and one that they are shown with, as nearest texts."""
        texts = [name for name, kind in self.form.columns.items() if kind is Kind.TEXT]
        return texts[0], texts[-1]
