"""The tasks of held-out rows: what validation and test rows ask, in words, and how many candidates they search.

What each shape asks is in `shapes`; raw text has no labels and is judged by the label-free panel (`panel`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow.compute as pc

from sentloom.data.columns import text_column
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import form_of
from sentloom.errors import InputError
from sentloom.evaluation.task import Kind, Task
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.evaluation_sets import NAME as GENERAL
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.request import Budget, Request
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.texts import FEWEST_ITEMS
from sentloom.fitting.split import Split

Side = Literal["validation", "test"]

SAMPLED_PAIRS = 300  # related pairs for the plots
LABELS = {  # of tasks with a name of their own
    GENERAL: "a paraphrase ranks closer than a near miss",
    "halves": "the first half of a sentence finds the second",
    "few-words": "a few words of a sentence find it",
    "neighbours": "the first ten texts near a text are those of its teacher",
    "neighbours: ranks": "all texts are as near to a text as for its teacher",
    "passages of sentences": "the first ten texts that a sentence finds are those of its teacher",
    "passages of sentences: ranks": "all texts are as near to a sentence as for its teacher",
}

VERIFY_SHARE = 0.15  # of a time budget, for the base and the winner on the test rows
SELECT_SHARE = 0.2  # of a time budget, for all runs on the validation rows
EXPECTED_RUNS = 10  # that are scored on the validation rows, with merged ones
MOST_CANDIDATES = 50_000  # with a budget in steps, which depends on no clock


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
        return handler(self.data).labelled


def held_out_tasks(
    inputs: Sequence[FitInput], splits: Sequence[Split], side: Side, more: Sequence[str], most: int
) -> tuple[HeldOut, ...]:
    """The tasks of each input. Rows that people wrote decide, or else mined ones, or else raw text: the others are left
    out, as they would cost time and say less.

    `more` are texts to search besides those of the inputs, and `most` is how many are searched at most.
    """
    best = max(handler(fit_input.data).trust for fit_input in inputs)
    parts = []
    for fit_input, split in zip(inputs, splits, strict=True):
        if handler(fit_input.data).trust == best:
            refuse_one_value(fit_input.name, getattr(split, side))
            parts.append(held_out_part(fit_input.name, split, side, more, most))
            if parts[-1].labelled:
                refuse_few_items(parts[-1])
    return tuple(parts)


def held_out_part(name: str, split: Split, side: Side, more: Sequence[str], most: int) -> HeldOut:
    """The tasks of one side of an input, whose queries search its candidates, or its training rows for a label."""
    data: Dataset = getattr(split, side)
    own = handler(data)
    corpus = own.corpus(split, more, most)
    part = held_out(name, data, corpus)
    if there := own.document_count(split, more):
        part = _of_documents(part, there)
    return replace(part, probe=own.probe(name, data, corpus)) if corpus and side == "test" else part


def _of_documents(part: HeldOut, count: int) -> HeldOut:
    """Record how many candidates there are, of which the task may search a sample."""
    (task,) = part.tasks
    return replace(part, tasks=(replace(task, settings=replace(task.settings, of_documents=count)),))


def held_out(name: str, data: Dataset, corpus: Corpus | None = None) -> HeldOut:
    """The tasks of some rows, and pairs of them that belong together."""
    own = handler(data)
    return HeldOut(name, data, own.tasks(name, data, corpus), tuple(own.related(data)[:SAMPLED_PAIRS]))


def refuse_few_items(part: HeldOut) -> None:
    """Refuse held-out rows that are too few to tell a better model from a worse one."""
    items = min((task.item_count for task in part.tasks), default=0)
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
    column = handler(data).value_column
    values = pc.unique(data.column(column)).to_pylist() if column else []
    if len(values) == 1:
        problem = f"the held-out rows all have the {data.own_name(column)} {values[0]}"
        raise InputError(name, problem, "at least two different ones", "give more rows, above all of the rarer kinds")


def task_labels(tasks: Sequence[Task]) -> list[str]:
    """What each task asks, in plain words; with the name of its file if there are several."""
    if len(tasks) == 1:
        return [task_label(tasks[0])]
    return [task_label(task) + ("" if task.name in LABELS else f" ({Path(task.name).name})") for task in tasks]


def task_label(task: Task) -> str:
    """What a task asks, in plain words."""
    if task.name in LABELS:
        return LABELS[task.name]
    counts = {role: len(texts) for role, texts in task.texts.items()}
    match task.settings.task:
        case Kind.SEARCH:
            return f"a query finds its answers among {counts['document']:,}"
        case Kind.TRIPLETS:
            return "the positive ranks closer than the negative"
        case Kind.TRANSLATION:
            return f"a sentence finds its translation among {counts['symmetric'] // 2:,}, in both directions"
        case Kind.CORRELATION:
            return "similarity agrees with people's scores"
        case Kind.CLASSIFICATION:
            return "a simple classifier on the vectors finds the label"
        case Kind.NEIGHBOURS:
            return "the nearest training row has the same label"
        case _:
            return task.main


@dataclass(frozen=True)
class Candidates:
    """How many candidates the validation and the test rows search at most, besides the held-out ones."""

    validation: int = MOST_CANDIDATES
    test: int = MOST_CANDIDATES


def affordable_candidates(seconds_per_text: float, budget: Budget) -> Candidates:
    """As many candidates as the budget has time for."""
    if budget.seconds is None:
        return Candidates()
    selecting, verifying = SELECT_SHARE * budget.seconds, VERIFY_SHARE * budget.seconds
    return Candidates(int(selecting / (EXPECTED_RUNS * seconds_per_text)), int(verifying / (2 * seconds_per_text)))


def read_corpus(request: Request) -> tuple[str, ...]:
    """The texts of the files that the user names to search among (`--corpus`), each once."""
    texts: dict[str, None] = {}
    for name in request.corpus:
        data = open_data(name)
        form = form_of(data.shape)
        column = form.texts[1] if form.sides == 2 and not form.is_judged else text_column(data, None)
        texts.update(dict.fromkeys(data.column(column).to_pylist()))
    return tuple(texts)
