"""Scores per language, where a file has several: one model serves all of them, and none should get worse."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sentloom.evaluation.significance import LEAST_CLUSTERS, effective_clusters
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.fitting.gate import measure
from sentloom.fitting.languages import first_texts, row_languages
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.result import Measure
from sentloom.fitting.tasks import HeldOut, task_labels
from sentloom.fitting.verify import Duel
from sentloom.hygiene.languages import language_name


def language_measures(duel: Duel, prepared: Prepared) -> tuple[Measure, ...]:
    """Both models on the test rows of each language that has enough of them, file by file."""
    inputs = {given.name: given for given in prepared.inputs}
    parts = [part for part in prepared.test if part.labelled or not prepared.labelled]
    spoken = [(part, row_languages(inputs[part.name], part.data)) for part in parts]
    tasks = [task for part in parts for task in part.tasks]
    labels = dict(zip([task.name for task in tasks], task_labels(tasks), strict=True))
    several = [(part, codes) for part, codes in spoken if len(set(codes) - {""}) > 1]
    return tuple(one for part, codes in several for one in _measured(duel, part, codes, labels))


def _measured(duel: Duel, part: HeldOut, rows: Sequence[str], labels: Mapping[str, str]) -> Iterator[Measure]:
    """By language, the most frequent first."""
    for task, before, after in zip(part.tasks, *duel.scores(part.tasks), strict=True):
        codes = item_languages(task, len(before[task.main].items), first_texts(part.data), rows)
        for code in sorted(set(codes) - {""}, key=lambda one: (-codes.count(one), one)):
            chosen = np.array([own == code for own in codes])
            old, new = (_only(scores, task.main, chosen) for scores in (before, after))
            if effective_clusters([old[task.main]]) >= LEAST_CLUSTERS:
                found = measure(task, f"{language_name(code)}: {labels[task.name]}", "watched", old, new)
                yield replace(found, name=f"{task.name}, {code}")


def item_languages(task: Task, count: int, texts: Sequence[str], rows: Sequence[str]) -> list[str]:
    """The language of each item: of the row that it asks about or expects, or of the row that it is; "" if unknown."""
    if not task.items:
        return list(rows) if count == len(rows) else []
    known = dict(zip(texts, rows, strict=True))
    return [known.get(asked) or known.get(expected, "") for asked, expected in task.items]


def _only(scores: Scores, main: str, chosen: np.ndarray) -> dict[str, Score]:
    """The main score on some items."""
    one = scores[main]
    groups, clusters = (None if some is None else some[chosen] for some in (one.groups, one.clusters))
    return {main: replace(one, items=one.items[chosen], groups=groups, clusters=clusters)}


def language_warnings(found: Sequence[Measure]) -> Iterator[str]:
    """A warning for every language that the model is worse in."""
    for one in found:
        if one.worse:
            yield (
                f"One language got worse. {one.label}: {one.before:.2f} before, {one.after:.2f} after "
                f"({one.low:+.2f} to {one.high:+.2f}, {one.items:,} test items)."
            )
