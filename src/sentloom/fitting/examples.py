"""What the report shows of single test items: the largest gains and losses, and a threshold for matches.

Above the threshold, the nearest candidate of a query is right often enough. It is chosen on the validation rows and
tested on the test rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Role
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.task import Kind, Score, Scores, Task
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Example, Threshold
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.classification import MOST_LABELLED
from sentloom.fitting.shapes.handler import Matching
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import HeldOut
from sentloom.search.nearest import top_k

SHOWN = 8  # gains, and as many losses
LONGEST = 300  # characters of a text

PRECISION = 0.9  # that a threshold must reach
FEWEST = 20  # queries that a threshold is chosen on
FEWEST_ACCEPTED = 10  # queries above the threshold: a precision of 100% from a single match says nothing


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
    items = [item for scored in zip(tasks, *scores, strict=True) for item in _items(*scored)]
    ranked = sorted(items, key=lambda item: item.after - item.before)
    lost = [item for item in ranked[:SHOWN] if item.after < item.before]
    won = [item for item in ranked[::-1][:SHOWN] if item.after > item.before]
    return tuple(_shown(won, models, memory)), tuple(_shown(lost, models, memory))


def _items(task: Task, before: Scores, after: Scores) -> Iterator[_Item]:
    """The items of a task whose score is a mean over items; in a correlation an item has no score of its own."""
    values = [_item_scores(scores[task.main]) for scores in (before, after)]
    if len(task.items) == len(values[0]):
        pairs = zip(*(values_of_model.tolist() for values_of_model in values), strict=True)
        yield from (_Item(task, number, *pair) for number, pair in enumerate(pairs))


def _item_scores(score: Score) -> Numbers:
    if score.metric == "accuracy":
        return (score.items[:, 0] == score.items[:, 1]).astype(np.float64)
    return score.items[:, 0] if score.metric == "mean" else np.empty(0)


def _shown(items: Sequence[_Item], models: tuple[Encoder, Encoder], memory: Memory) -> Iterator[Example]:
    for item in items:
        asked, expected = item.task.items[item.number]
        nearest = [shortened(_nearest(model, item.task, asked, memory)) for model in models]
        yield Example(
            item.task.name, shortened(asked), shortened(expected), 100 * item.before, 100 * item.after, *nearest
        )


def _nearest(model: Encoder, task: Task, query: str, memory: Memory) -> str:
    """The document nearest to a query, or the nearest row after its label; empty if nothing is searched."""
    if task.known:
        at = _nearest_place(model, query, task.known["text"], ("symmetric", "symmetric"), memory)
        return f"{task.known['label'][at]}: {task.known['text'][at]}"
    if task.settings.task is not Kind.SEARCH:
        return ""
    documents = task.texts["document"]
    return documents[_nearest_place(model, query, documents, ("query", "document"), memory)]


def _nearest_place(model: Encoder, query: str, texts: Sequence[str], roles: tuple[Role, Role], memory: Memory) -> int:
    vectors = vectors_of(model, [query], roles[0], memory), vectors_of(model, texts, roles[1], memory)
    return int(top_k(*vectors, 1)[0][0, 0])


def shortened(text: str) -> str:
    """At most `LONGEST` characters of a text, because the page of a report stays below 1 MB."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


@dataclass(frozen=True)
class Matches:
    """The nearest candidate of each query: its cosine, and whether it is right."""

    cosines: Numbers
    right: Numbers

    def at(self, threshold: float) -> tuple[float | None, float]:
        """Precision and recall if matches below the threshold are rejected; no precision if none is left."""
        right = self.right[self.cosines >= threshold]
        return float(right.mean()) if len(right) else None, float(right.sum() / len(self.right))


def find_threshold(encoder: Encoder, folds: Sequence[Encoder], prepared: Prepared, memory: Memory) -> Threshold | None:
    """The lowest threshold that reaches the precision on the validation rows, and what it gives on both sides.

    If no threshold reaches it, the one with the highest precision, which is not advised. None if no input has pairs or
    labels, or if there are too few queries. Without validation rows, the models of the folds look for what they have
    not seen.
    """
    names = [fit_input.name for fit_input in prepared.inputs]
    asked = [(model, fold.parts, fold.splits) for model, fold in zip(folds, prepared.folds, strict=True)]
    asked = asked or [(encoder, prepared.validation, prepared.splits)]
    tested = [(encoder, prepared.test, prepared.splits)]

    def matches(model: Encoder, parts: Sequence[HeldOut], splits: Sequence[Split], most: int) -> list[Matches]:
        return nearest_matches(model, parts, dict(zip(names, splits, strict=True)), memory, most)

    chosen = joined([matches(*side, prepared.searched.validation) for side in asked])
    proven = joined([matches(*side, prepared.searched.test) for side in tested])
    if chosen is None or proven is None or len(chosen.cosines) < FEWEST:
        return None
    cosine, accepted = choose(chosen, PRECISION)
    precision, recall = chosen.at(cosine)
    assert precision is not None
    return Threshold(cosine, PRECISION, precision, recall, *proven.at(cosine), len(chosen.cosines), accepted)


def choose(matches: Matches, precision: float) -> tuple[float, int]:
    """The lowest cosine at which the precision is reached, or else the one with the highest; and how many it accepts.

    At least `FEWEST_ACCEPTED` matches are accepted, or all if there are fewer.
    """
    order = np.argsort(-matches.cosines, kind="stable")
    cosines = matches.cosines[order]
    reached = np.cumsum(matches.right[order]) / np.arange(1, len(order) + 1)
    last_of_tie = np.append(np.diff(cosines) != 0, True)  # a threshold accepts all matches with its cosine
    places = np.flatnonzero(last_of_tie)
    places = places[places + 1 >= min(FEWEST_ACCEPTED, len(order))]
    enough = places[reached[places] >= precision]
    place = enough[-1] if len(enough) else places[np.argmax(reached[places])]
    return float(cosines[place]), int(place) + 1


def nearest_matches(
    encoder: Encoder,
    parts: Sequence[HeldOut],
    splits: Mapping[str, Split],
    memory: Memory,
    most: int = MOST_LABELLED,
) -> list[Matches]:
    """The matches of held-out queries of pairs, triplets and labelled texts; `splits` has the splits by input.

    Labelled texts search as many training rows as in their tasks.
    """
    matchings = (handler(part.data).matching(part, splits.get(part.name), most) for part in parts)
    return [_nearest_of(encoder, matching, memory) for matching in matchings if matching]


def _nearest_of(encoder: Encoder, matching: Matching, memory: Memory) -> Matches:
    query, document = matching.roles
    queries = vectors_of(encoder, matching.queries, query, memory)
    numbers, cosines = top_k(queries, vectors_of(encoder, matching.documents, document, memory), 1)
    right = [matching.is_right(number, at) for number, at in enumerate(numbers[:, 0].tolist())]
    return Matches(cosines[:, 0].astype(np.float64), np.array(right, np.float64))


def joined(matches: Sequence[Sequence[Matches]]) -> Matches | None:
    """All matches; None if there are none."""
    every = list(chain(*matches))
    if not every:
        return None
    return Matches(np.concatenate([part.cosines for part in every]), np.concatenate([part.right for part in every]))
