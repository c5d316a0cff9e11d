"""Raw texts: judged by views of themselves, and learned from before everything else. With titles, they are pairs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import TITLE, Shape
from sentloom.evaluation.task import CLUSTER, Task
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.panel import PANEL_TEXTS, panel, without_some_words
from sentloom.fitting.shapes.handler import Handler, Pairs, Training
from sentloom.writing.views.passages import neighbours
from sentloom.writing.views.settings import Neighbours

if TYPE_CHECKING:
    from sentloom.fitting.training_sets import TrainingSet

TITLED = 0.5  # of the texts must have a title to be documents with titles
PAIR_NAMES = {TITLE: "anchor", "text": "positive"}
DOCUMENTS = 0.2  # of the texts must have two passages or more for routes on passages
FEWEST_ITEMS = 10  # per task: fewer show nothing


@dataclass(frozen=True)
class Texts(Handler):
    """One text per row."""

    def joined(self, data: Dataset) -> Dataset:
        """Texts with a title as pairs of title and text; texts alone if most have none."""
        return titled_pairs(data)

    def training_form(self, data: Dataset) -> Dataset:
        """Every text once."""
        return texts_of(data)

    def language_examples(self, rows: Dataset) -> Dataset | None:
        """Batches of raw text have no negatives that another language would make easy."""
        return None

    def passages(self, sample: Sequence[str], rows: int) -> int:
        """As many as the sample has, if enough of it are documents."""
        pairs = [len(neighbours(text, Neighbours().sentences)) for text in sample]
        documents = sum(map(bool, pairs))
        return rows * sum(pairs) // len(pairs) if documents >= DOCUMENTS * len(pairs) else 0

    def main(self, data: "TrainingSet") -> Training:
        """What needs nothing but text and dropout."""
        why = (
            "pulls a sentence towards itself under another dropout mask and away from other sentences; needs only text"
        )
        return Training("simcse", why, {"method": "simcse", "learning_rate": 1e-5})

    def tasks(self, name: str, data: Dataset, corpus: Corpus | None) -> tuple[Task, ...]:
        """The label-free panel."""
        texts = data.column("text").to_pylist()[:PANEL_TEXTS]
        clusters = data.column(CLUSTER).to_pylist() if CLUSTER in data.table.column_names else []
        known = dict(zip(texts, clusters, strict=False))
        return tuple(task for task in panel(texts, known) if task.item_count >= FEWEST_ITEMS)

    def related(self, data: Dataset) -> Pairs:
        """Each text without some of its words."""
        texts = data.column("text").to_pylist()[:PANEL_TEXTS]
        return [(text, view) for text in texts if (view := without_some_words(text)) != text]


def titled_pairs(data: Dataset) -> Dataset:
    """Texts with a title as pairs of title and text; texts alone if most have none."""
    if TITLE not in data.table.column_names:
        return data
    titles = [str(title).strip() for title in data.column(TITLE).to_pylist()]
    titled = np.array([bool(title) for title in titles])
    if titled.mean() < TITLED:
        return data.derive(data.table.drop_columns([TITLE]), "without titles")
    with_title = data.select(titled)
    table = with_title.table.rename_columns([PAIR_NAMES.get(name, name) for name in with_title.table.column_names])
    pairs = with_title.derive(table, "titles and texts as pairs", Shape.PAIRS)
    without = {"texts without a title": int((~titled).sum())} if not titled.all() else {}
    used = {"anchor": TITLE, "positive": data.used.get("text", "text")}
    return replace(pairs, used=used, skipped={**data.skipped, **without})


TEXTS = Texts(Shape.TEXTS, place=0, labelled=False, besides=(TITLE,))
