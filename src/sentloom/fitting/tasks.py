"""What is held out, as tasks: the score that decides follows from what a row is."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from sentloom.data.dataset import Dataset
from sentloom.data.nli import pairs_from_nli, triplets_from_nli
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError
from sentloom.evaluation.suites.user_tasks import data_task
from sentloom.evaluation.task import Task
from sentloom.fitting.general import NAME as GENERAL
from sentloom.fitting.panel import panel, without_some_words

HIGH = 0.8  # of the way from the least to the greatest score: such pairs mean much the same
SAMPLED_PAIRS = 300  # for pictures of how related texts lie
PANEL_TEXTS = 600  # held-out sentences that views are made of
FEWEST_ITEMS = 10  # of a task: fewer show nothing, and their intervals are no intervals
WORDS = {  # of tasks that go by a name of their own
    GENERAL: "a paraphrase is nearer than a near miss",
    "halves": "the first half of a sentence finds the second",
    "few-words": "a few words of a sentence find it",
}


@dataclass(frozen=True)
class HeldOut:
    """One part of an input that is held out: what it is scored by, and pairs in it that belong together."""

    name: str
    data: Dataset
    tasks: tuple[Task, ...]
    related: tuple[tuple[str, str], ...]

    @property
    def labelled(self) -> bool:
        """Whether people said what belongs together; raw text is judged by views of itself."""
        return self.data.shape is not Shape.TEXTS


def held_out(name: str, data: Dataset, language: str | None, cache: Path, synthesizer: str | None) -> HeldOut:
    """The tasks of a part. NLI is asked as triplets; raw text by the panel."""
    if data.shape is Shape.TEXTS:
        texts = data.column("text").to_pylist()[:PANEL_TEXTS]
        tasks = tuple(
            task for task in panel(texts, language, cache, synthesizer=synthesizer) if items_of(task) >= FEWEST_ITEMS
        )
        views = tuple((text, view) for text in texts if (view := without_some_words(text)) != text)
        return HeldOut(name, data, tasks, views[:SAMPLED_PAIRS])
    asked = triplets_from_nli(data) if data.shape is Shape.NLI else data
    task = data_task(None, name, name, asked, {"preset": "fast"})
    return HeldOut(name, data, (task,), tuple(_related(data)[:SAMPLED_PAIRS]))


def items_of(task: Task) -> int:
    """How many items a task asks, as far as that is known before it is scored."""
    found: int = task.settings.get("items", len(task.texts.get("query", task.texts.get("symmetric", ()))))
    return found


def refuse_few(part: HeldOut) -> None:
    """Say at once that held-out rows are too few to tell a better model from a worse one."""
    items = min(map(items_of, part.tasks), default=0)
    if not part.tasks:
        found, wanted = "texts too short to be judged by themselves", "sentences, most of them of six words or more"
        fix = "give longer texts, pairs or labels"
    elif items < FEWEST_ITEMS:
        found, wanted = f"held-out rows that ask {items} different things", f"at least {FEWEST_ITEMS}"
        fix = "give more rows, above all with other texts on the first side"
    else:
        return
    raise InputError(part.name, found, wanted, fix)


def refuse_one_kind(name: str, data: Dataset) -> None:
    """The same where all held-out rows have one label, or one score."""
    told = {Shape.SCORED_PAIRS: "score", Shape.CLASSIFICATION: "label"}.get(data.shape)
    values = pc.unique(data.column(told)).to_pylist() if told else []
    if len(values) == 1:
        found, wanted = f"held-out rows that all have the {told} {values[0]}", "two different ones or more among them"
        raise InputError(name, found, wanted, "give more rows, above all of the rarer kinds")


def _related(data: Dataset) -> list[tuple[str, str]]:
    """Pairs that mean much the same, by the labels; none where labels say nothing of pairs."""
    if data.shape is Shape.NLI:
        data = pairs_from_nli(data)
    if data.shape is Shape.SCORED_PAIRS:
        data = high_pairs(data)
    if data.shape is Shape.CLASSIFICATION:
        return []
    left, right = (data.column(name).to_pylist() for name in COLUMNS[data.shape][:2])
    return list(zip(left, right, strict=True))


def high_pairs(data: Dataset) -> Dataset:
    """The pairs that people scored high, as pairs to learn from."""
    scores = data.column("score")
    least, greatest = pc.min(scores).as_py(), pc.max(scores).as_py()
    high = data.select(np.asarray(scores.to_numpy() >= least + HIGH * (greatest - least)))
    names = {"sentence1": "anchor", "sentence2": "positive"}
    table = high.table.drop_columns(["score"])
    renamed = table.rename_columns([names.get(name, name) for name in table.column_names])
    return high.derive(renamed, "high scores as pairs", Shape.PAIRS)


def named_words(task: Task) -> str:
    """The same with the name of its file, where there are several."""
    return in_words(task) if task.name in WORDS else f"{in_words(task)} ({Path(task.name).name})"


def in_words(task: Task) -> str:
    """What a task asks, in plain words."""
    if task.name in WORDS:
        return WORDS[task.name]
    kind = task.settings.get("task")
    counts = {role: len(texts) for role, texts in task.texts.items()}
    match kind:
        case "search":
            return f"a text finds its partner among {counts['document']:,}"
        case "triplets":
            return "the positive is nearer than the negative"
        case "translation":
            return f"a sentence finds its translation among {counts['symmetric'] // 2:,}, both ways"
        case "correlation":
            return "nearness goes with people's scores"
        case "classification":
            return "a plain classifier on the vectors finds the label"
        case _:
            return task.main
