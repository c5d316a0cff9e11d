"""Teachers: what the base learns from, told apart by what they are, and how a student of encoders is tested.

An encoder teaches its neighbourhoods on raw text (methods/teacher.py), whether these are better than the base's or not.
Without labels the verdict is agreement: on held-out texts, how much closer the student has come to its teachers. That
is no proof that it is of more use. A cross-encoder teaches how it ranks candidates, if it is shown to rank the
validation queries better than the base.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from sentloom.encoder.catalogue.entries import Entry
from sentloom.encoder.catalogue.listed import BGE_SMALL, E5_MULTILINGUAL
from sentloom.encoder.catalogue.places import is_here
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.locate import is_cross_encoder
from sentloom.encoder.tokens import Role
from sentloom.errors import NothingToGain, option
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.task import CLUSTER, Kind, Lookup, Score, Scores, Task, TaskSettings
from sentloom.fitting.bases import NO_WRITER
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Request
from sentloom.fitting.shapes.texts import FEWEST_ITEMS
from sentloom.fitting.tasks import HeldOut, refuse_few_items
from sentloom.search.vectors import Vectors
from sentloom.writing.views.passages import sentences
from sentloom.writing.views.settings import Sentences

K = 10  # neighbours that student and teacher may share
MOST_TEXTS = 600  # held-out texts that are compared
NEIGHBOURS, SHORT_TEXTS = "neighbours", "passages of sentences"
RANKS = "rank correlation"
ADVISED = (BGE_SMALL, E5_MULTILINGUAL)
# docs/results-raw-text.md
GAINED = {BGE_SMALL.name: "; it gained 4.3 points on short commands and lost 1.8 to 3.8 on answers to questions"}


@dataclass(frozen=True)
class Teachers:
    """What teaches, as stages name it."""

    encoders: tuple[str, ...] = ()
    cross_encoders: tuple[str, ...] = ()

    @cached_property
    def identities(self) -> list[str]:
        """The content of the encoders."""
        return [shared_encoder(name).fingerprint() for name in self.encoders]

    def vectors(self, texts: Sequence[str], role: Role, memory: Memory) -> Vectors:
        """The unit vectors of all encoders side by side, whose cosine is the mean of theirs."""
        parts = [vectors_of(shared_encoder(name), texts, role, memory) for name in self.encoders]
        joined: Vectors = np.concatenate([_unit(part) for part in parts], axis=1)
        return joined


def find_teachers(request: Request) -> Teachers:
    """Those that the user named."""
    cross = tuple(name for name in request.teacher_paths if is_cross_encoder(name))
    return Teachers(tuple(name for name in request.teacher_paths if name not in cross), cross)


def advised_teacher(inputs: Sequence[FitInput]) -> Entry:
    """The teacher of the catalogue for texts in the language of the first input."""
    language = inputs[0].language or "en"
    return next((entry for entry in ADVISED if language in entry.languages), ADVISED[-1])


def refuse_nothing_to_learn_from(request: Request, prepared: Prepared, teachers: Teachers) -> None:
    """Without labels, a teacher or a writer nothing could be shown: say what would help, before anything is trained."""
    writes = request.writer not in (None, NO_WRITER)
    if request.force or prepared.recipe or not prepared.label_free or teachers.encoders or writes:
        return
    names = ", ".join(fit_input.name for fit_input in prepared.inputs)
    teacher = advised_teacher(prepared.inputs)
    get = "" if is_here(teacher) else f", after `{teacher.get}`"
    problem = "this is raw text, and from text alone no route made the base better where that was measured"
    fix = (
        f"what helps: a teacher ({option('teacher', teacher.name)}{get}{GAINED.get(teacher.name, '')}); titles of the "
        "texts as a second column; 50 pairs of a question and its answer as a second file. "
        f"{option('force', True)} trains on the text alone, and `sentloom tick` then lets you judge"
    )
    raise NothingToGain(names, problem, "", fix)


def refuse_unjudged(prepared: Prepared) -> None:
    """Refuse raw texts that are too few or too short for the label-free panel."""
    for part in (*prepared.validation, *prepared.test):
        refuse_few_items(part)


# --- agreement ---


def with_agreement(prepared: Prepared, teachers: Teachers, memory: Memory) -> Prepared:
    """The data whose held-out texts ask how close a model is to its teachers, where no labels decide.

    The label-free panel, which trained models can fool, remains as an alarm.
    """
    if not teachers.encoders or prepared.recipe or not prepared.label_free or prepared.agrees:
        return prepared
    validation, test = (
        tuple(replace(part, tasks=agreement_tasks(part, teachers, memory)) for part in side)
        for side in (prepared.validation, prepared.test)
    )
    if not all(part.tasks for part in (*validation, *test)):
        refuse_unjudged(prepared)
        return prepared
    panel = [task for part in prepared.test for task in part.tasks]
    ranks = [replace(task, name=f"{task.name}: ranks", main=RANKS) for part in test for task in part.tasks]
    return replace(prepared, validation=validation, test=test, watched=(*panel, *ranks), agrees=True)


def agreement_tasks(part: HeldOut, teachers: Teachers, memory: Memory) -> tuple[Task, ...]:
    """What a model and its teachers find near held-out texts and, of texts of several sentences, for sentences."""
    texts = list(dict.fromkeys(part.data.column("text").to_pylist()))[:MOST_TEXTS]
    rows = part.data.column(CLUSTER).to_pylist() if CLUSTER in part.data.table.column_names else []
    clusters = dict(zip(part.data.column("text").to_pylist(), rows, strict=False))
    pairs = [pair for text in texts for pair in sentences(text, Sentences(pairs=1))]
    tasks = []
    if len(texts) > K + FEWEST_ITEMS:
        asked = Asked(NEIGHBOURS, texts, texts, texts, ("symmetric", "symmetric"))
        tasks.append(agreement_task(asked, teachers, memory, clusters))
        if len(pairs) > len(texts) // 2:
            short, own = zip(*pairs, strict=True)
            asked = Asked(SHORT_TEXTS, short, texts, own, ("query", "document"))
            tasks.append(agreement_task(asked, teachers, memory, clusters))
    return tuple(tasks)


@dataclass(frozen=True)
class Asked:
    """Texts, what is searched for them, and the text that each of them is from, which says its cluster."""

    name: str
    queries: Sequence[str]
    documents: Sequence[str]
    owners: Sequence[str]
    roles: tuple[Role, Role]


def agreement_task(asked: Asked, teachers: Teachers, memory: Memory, clusters: Mapping[str, int]) -> Task:
    """`overlap@10`: the share of the teachers' first ten that are a model's too; and the correlation of all ranks."""
    taught = similarities(*(teachers.vectors(*side, memory) for side in _sides(asked)))
    itself = asked.queries == asked.documents
    numbers = np.array([clusters.get(owner, at) for at, owner in enumerate(asked.owners)]) if clusters else None

    def score(lookup: Lookup) -> Scores:
        own = similarities(*(_unit(lookup(*side)) for side in _sides(asked)))
        items = {"overlap@10": overlap(own, taught, itself=itself), RANKS: rank_correlation(own, taught)}
        return {name: Score("mean", values[:, None], clusters=numbers) for name, values in items.items()}

    content = json.dumps([*map(list, (asked.queries, asked.documents, asked.owners)), teachers.identities])
    digest = hashlib.sha256(f"{content} {None if numbers is None else numbers.tolist()}".encode()).hexdigest()
    texts: dict[Role, Sequence[str]] = {}
    for side, role in _sides(asked):
        texts[role] = list(dict.fromkeys([*texts.get(role, ()), *side]))
    settings = TaskSettings(Kind.AGREEMENT, K, items=len(asked.queries), documents=len(asked.documents))
    return Task(asked.name, "overlap@10", texts, score, "held-out text", digest, settings)


def _sides(asked: Asked) -> tuple[tuple[Sequence[str], Role], tuple[Sequence[str], Role]]:
    query, document = asked.roles
    return (asked.queries, query), (asked.documents, document)


Similarities = npt.NDArray[np.float64]


def similarities(queries: Vectors, documents: Vectors) -> Similarities:
    """(n, m)."""
    product: Similarities = queries.astype(np.float64) @ documents.astype(np.float64).T
    return product


def overlap(own: Similarities, taught: Similarities, *, itself: bool) -> Similarities:
    """For each row, the share of the K most similar that two models have in common; a text is not its own."""
    both = zip(_first(own, itself), _first(taught, itself), strict=True)
    return np.array([len({*mine} & {*theirs}) / K for mine, theirs in both])


def _first(scores: Similarities, itself: bool) -> list[list[int]]:
    ranked = np.where(np.eye(len(scores), dtype=bool), -np.inf, scores) if itself else scores
    first: list[list[int]] = np.argsort(-ranked, axis=1, kind="stable")[:, :K].tolist()
    return first


def rank_correlation(own: Similarities, taught: Similarities) -> Similarities:
    """Spearman's correlation of each row."""
    a, b = (rankdata(scores, axis=1) for scores in (own, taught))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    lengths = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    correlations: Similarities = (a * b).sum(axis=1) / np.maximum(lengths, 1e-12)
    return correlations


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit
