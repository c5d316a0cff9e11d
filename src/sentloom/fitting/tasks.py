"""Step 4, tasks: what validation and test rows ask of a model; the score that decides follows from the rows' shape."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow.compute as pc

from sentloom.data.dataset import Dataset
from sentloom.data.nli import pairs_from_nli, triplets_from_nli
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError
from sentloom.evaluation.suites.user_tasks import Corpus, data_task, known_labels_task
from sentloom.evaluation.task import CLUSTER, Task
from sentloom.fitting.general import NAME as GENERAL
from sentloom.fitting.inputs import FitInput, is_graded
from sentloom.fitting.panel import panel, without_some_words
from sentloom.fitting.searched import SEARCHING, candidate_texts, corpus_of, labelled_rows
from sentloom.fitting.split import Split
from sentloom.fitting.training_sets import high_pairs

SAMPLED_PAIRS = 300  # related pairs for the plots
PANEL_TEXTS = 600  # held-out sentences that the label-free panel uses
PROBE = {"preset": "fast"}  # of labelled rows
TRIPLETS = "triplet accuracy"  # a score of triplets besides those of search
FEWEST_ITEMS = 10  # per task: fewer show nothing
LABELS = {  # of tasks with a name of their own
    GENERAL: "a paraphrase ranks closer than a near miss",
    "halves": "the first half of a sentence finds the second",
    "few-words": "a few words of a sentence find it",
}


Side = Literal["validation", "test"]


@dataclass(frozen=True)
class HeldOut:
    """The validation or test rows of one input: the tasks they are scored by, and pairs that belong together."""

    name: str
    data: Dataset
    tasks: tuple[Task, ...]
    related: tuple[tuple[str, str], ...]
    probe: Task | None = None  # a classifier trained on the training rows: of labelled test rows, and decides nothing

    @property
    def labelled(self) -> bool:
        """Whether people said what belongs together; raw text is judged by views of itself."""
        return self.data.shape is not Shape.TEXTS


def held_out_tasks(
    inputs: Sequence[FitInput], splits: Sequence[Split], side: Side, more: Sequence[str], most: int
) -> tuple[HeldOut, ...]:
    """The tasks of each input. If some inputs have labels, raw text is left out: it would cost time and say less.

    `more` are texts to search besides those of the inputs, and `most` is how many are searched at most.
    """
    labelled = any(given.data.shape is not Shape.TEXTS for given in inputs)
    parts = []
    for given, split in zip(inputs, splits, strict=True):
        if not labelled or given.data.shape is not Shape.TEXTS:
            refuse_one_value(given.name, getattr(split, side))
            parts.append(held_out_part(given.name, split, side, more, most))
            refuse_few_items(parts[-1])
    return tuple(parts)


def held_out_part(name: str, split: Split, side: Side, more: Sequence[str], most: int) -> HeldOut:
    """The tasks of one side of an input, whose queries search its candidates, or its training rows for a label."""
    data: Dataset = getattr(split, side)
    searching = data.shape in SEARCHING or is_graded(data)
    corpus = corpus_of(split, more, most) if searching else labelled_rows(split, most)
    part = held_out(name, data, corpus)
    if side == "test" and corpus and data.shape is Shape.CLASSIFICATION:
        return replace(part, probe=known_labels_task(name, data, PROBE, corpus))
    if searching and data.shape is not Shape.PARALLEL:
        return _of_documents(part, len(candidate_texts(split, more)))
    return part


def _of_documents(part: HeldOut, count: int) -> HeldOut:
    """Record how many candidates there are, of which the task may search a sample."""
    (task,) = part.tasks
    return replace(part, tasks=(replace(task, settings={**task.settings, "of_documents": count}),))


def held_out(name: str, data: Dataset, corpus: Corpus | None = None) -> HeldOut:
    """The tasks of some rows: NLI is asked as triplets, triplets search, raw text is judged by the label-free panel."""
    if data.shape is Shape.TEXTS:
        texts = data.column("text").to_pylist()[:PANEL_TEXTS]
        clusters = data.column(CLUSTER).to_pylist() if CLUSTER in data.table.column_names else []
        known = dict(zip(texts, clusters, strict=False))
        tasks = tuple(task for task in panel(texts, known) if item_count(task) >= FEWEST_ITEMS)
        views = tuple((text, view) for text in texts if (view := without_some_words(text)) != text)
        return HeldOut(name, data, tasks, views[:SAMPLED_PAIRS])
    asked = triplets_from_nli(data) if data.shape is Shape.NLI else data
    kind = "retrieval" if is_graded(data) or data.shape is Shape.TRIPLETS else None
    task = data_task(kind, name, name, asked, PROBE, corpus)
    task = _with_triplets(task, data) if data.shape is Shape.TRIPLETS and any(data["negatives"]) else task
    return HeldOut(name, data, (task,), tuple(_related(data)[:SAMPLED_PAIRS]))


def _with_triplets(task: Task, data: Dataset) -> Task:
    """A search task that also says how often the positive is closer than the row's own negatives."""
    own = data_task(None, task.name, task.name, data, None)
    settings = {**task.settings, TRIPLETS: own.sha256}
    return replace(
        task, score=lambda lookup: {**task.score(lookup), TRIPLETS: own.score(lookup)[own.main]}, settings=settings
    )


def item_count(task: Task) -> int:
    """How many items a task asks, as far as that is known before it is scored."""
    if task.settings.get("task") == "correlation":
        return len(task.texts["symmetric"]) // 2  # pairs
    found: int = task.settings.get("items", len(task.items))
    return found


def refuse_few_items(part: HeldOut) -> None:
    """Refuse held-out rows that are too few to tell a better model from a worse one."""
    items = min(map(item_count, part.tasks), default=0)
    if not part.tasks:
        problem, expected = (
            "the texts are too short to be judged without labels",
            "sentences, most of six words or more",
        )
        fix = "give longer texts, pairs or labels"
    elif items < FEWEST_ITEMS and part.tasks[0].known:
        problem = f"only {items} held-out rows have a label that training rows have"
        expected = f"at least {FEWEST_ITEMS}: labels that occur in two rows or more"
        fix = "give more rows per label, or coarser labels"
    elif items < FEWEST_ITEMS:
        problem, expected = f"the held-out rows ask only {items} different things", f"at least {FEWEST_ITEMS}"
        fix = "give more rows, above all with other texts on the first side"
    else:
        return
    raise InputError(part.name, problem, expected, fix)


def refuse_one_value(name: str, data: Dataset) -> None:
    """Refuse held-out rows that all have one label or one score."""
    column = {Shape.SCORED_PAIRS: "score", Shape.CLASSIFICATION: "label"}.get(data.shape)
    values = pc.unique(data.column(column)).to_pylist() if column else []
    if len(values) == 1:
        problem = f"the held-out rows all have the {data.own_name(str(column))} {values[0]}"
        raise InputError(name, problem, "at least two different ones", "give more rows, above all of the rarer kinds")


def _related(data: Dataset) -> list[tuple[str, str]]:
    """Pairs that mean much the same according to the labels; none if the labels say nothing about pairs."""
    if data.shape is Shape.NLI:
        data = pairs_from_nli(data)
    if data.shape is Shape.SCORED_PAIRS:
        data = high_pairs(data)
    if data.shape is Shape.CLASSIFICATION:
        return []
    left, right = (data.column(name).to_pylist() for name in COLUMNS[data.shape][:2])
    return list(zip(left, right, strict=True))


def task_labels(tasks: Sequence[Task]) -> list[str]:
    """What each task asks, in plain words; with the name of its file if there are several."""
    if len(tasks) == 1:
        return [task_label(tasks[0])]
    return [task_label(one) if one.name in LABELS else f"{task_label(one)} ({Path(one.name).name})" for one in tasks]


def task_label(task: Task) -> str:
    """What a task asks, in plain words."""
    if task.name in LABELS:
        return LABELS[task.name]
    counts = {role: len(texts) for role, texts in task.texts.items()}
    match task.settings.get("task"):
        case "search":
            return f"a query finds its answers among {counts['document']:,}"
        case "triplets":
            return "the positive ranks closer than the negative"
        case "translation":
            return f"a sentence finds its translation among {counts['symmetric'] // 2:,}, in both directions"
        case "correlation":
            return "similarity agrees with people's scores"
        case "classification":
            return "a simple classifier on the vectors finds the label"
        case "neighbours":
            return "the nearest training row has the same label"
        case _:
            return task.main
