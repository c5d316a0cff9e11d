"""Examples: the test items on which the fitted model gains most, and those on which it loses most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sentloom.encoder import Encoder
from sentloom.encoder.prompts import Role
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.fitting.result import Example
from sentloom.search.nearest import top_k

SHOWN = 8  # of each kind
LONGEST = 300  # characters of a text


@dataclass(frozen=True)
class _Item:
    """One item of a task, with its score before and after."""

    task: Task
    number: int
    before: float
    after: float


def examples(
    models: tuple[Encoder, Encoder],
    tasks: Sequence[Task],
    scores: tuple[Sequence[Scores], Sequence[Scores]],
    memory: Memory,
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The largest gains and the largest losses of the second model over all tasks, each the largest first."""
    found = [item for each in zip(tasks, *scores, strict=True) for item in _items(*each)]
    ranked = sorted(found, key=lambda item: item.after - item.before)
    lost = [item for item in ranked[:SHOWN] if item.after < item.before]
    won = [item for item in ranked[::-1][:SHOWN] if item.after > item.before]
    return tuple(_shown(won, models, memory)), tuple(_shown(lost, models, memory))


def _items(task: Task, before: Scores, after: Scores) -> Iterator[_Item]:
    """The items of a task whose score is a mean over items; in a correlation an item has no score of its own."""
    values = [_item_scores(scores[task.main]) for scores in (before, after)]
    if len(task.items) == len(values[0]):
        pairs = zip(*(some.tolist() for some in values), strict=True)
        yield from (_Item(task, number, *pair) for number, pair in enumerate(pairs))


def _item_scores(score: Score) -> Numbers:
    if score.metric == "accuracy":
        return (score.items[:, 0] == score.items[:, 1]).astype(np.float64)
    return score.items[:, 0] if score.metric == "mean" else np.empty(0)


def _shown(items: Sequence[_Item], models: tuple[Encoder, Encoder], memory: Memory) -> Iterator[Example]:
    for item in items:
        asked, expected = item.task.items[item.number]
        found = [shortened(_nearest(model, item.task, asked, memory)) for model in models]
        yield Example(
            item.task.name, shortened(asked), shortened(expected), 100 * item.before, 100 * item.after, *found
        )


def _nearest(model: Encoder, task: Task, query: str, memory: Memory) -> str:
    """The document nearest to a query, or the nearest row after its label; empty if nothing is searched."""
    if task.known:
        at = _nearest_place(model, query, task.known["text"], ("symmetric", "symmetric"), memory)
        return f"{task.known['label'][at]}: {task.known['text'][at]}"
    if task.settings.get("task") != "search":
        return ""
    documents = task.texts["document"]
    return documents[_nearest_place(model, query, documents, ("query", "document"), memory)]


def _nearest_place(model: Encoder, query: str, texts: Sequence[str], roles: tuple[Role, Role], memory: Memory) -> int:
    vectors = vectors_of(model, [query], roles[0], memory), vectors_of(model, texts, roles[1], memory)
    return int(top_k(*vectors, 1)[0][0, 0])


def shortened(text: str) -> str:
    """At most so many characters of a text, because the page of a report stays below 1 MB."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
