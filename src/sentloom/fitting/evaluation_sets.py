"""Step 1, evaluation sets: what the user names to decide, and what general ability is watched on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from sentloom.data.columns import among
from sentloom.data.dataset import Dataset
from sentloom.evaluation.suites.catalog import find_task, load_suites
from sentloom.evaluation.suites.set_source import SetSource
from sentloom.evaluation.task import Task
from sentloom.fitting.clusters import clustered
from sentloom.fitting.general import general_task
from sentloom.fitting.inputs import FitInput, percent
from sentloom.fitting.request import Log, Request
from sentloom.fitting.sentence_keys import Keys, distinct_keys
from sentloom.pipeline.evaluation_sets import sentences_of

GENERAL_SET = "sts-b"  # looked for in the user's data folder


def read_against(request: Request, corpus: Sequence[str], log: Log) -> tuple[Task, ...]:
    """The evaluation sets that the user named to decide; say which parts of them are missing.

    `corpus` are more texts that the queries of files search.
    """
    suites = load_suites(request.against, SetSource(request.general, clustered=_clustered_apart(), corpus=corpus))
    for suite in suites:
        for name, why in suite.missing.items():
            log(f"{suite.name}: {name} is left out, {why}")
    return tuple(_labelled(task, request) for suite in suites for task in suite.tasks)


def _clustered_apart() -> Callable[[Dataset], Dataset]:
    """Cluster one set after the other: no number of one is used by another, since equal numbers are one cluster."""
    used = 0

    def each(data: Dataset) -> Dataset:
        nonlocal used
        found = clustered(data, used)
        used += len(data)
        return found

    return each


def _labelled(task: Task, request: Request) -> Task:
    """A task of rows in memory is called by what they are, not by the file that they were written to."""
    label = request.label(task.name)
    return task if label == task.name else replace(task, name=label, source=label)


def read_general(request: Request) -> Task:
    """What general ability is watched on: STS-B in the user's data folder, or the triplets that we wrote."""
    return find_task(GENERAL_SET, SetSource(request.general)) if request.general else general_task()


def shared_sentences(inputs: Sequence[FitInput], tasks: Sequence[Task]) -> list[str]:
    """Which inputs have sentences in common, and which sentences of evaluation sets appear in an input."""
    keys = {one.name: distinct_keys([one.data]) for one in inputs}
    own_columns = {one.name for one in inputs if one.label_column}  # of the same files
    lines = [
        f"{left} and {right} have {count:,} sentences in common ({percent(count / len(keys[left]))} of {left})"
        for left, right in combinations(keys, 2)
        if not own_columns >= {left, right} and (count := _common(keys[left], keys[right]))
    ]
    for data in map(sentences_of, tasks):
        scored = distinct_keys([data])
        lines += [
            f"{count:,} of the {len(scored):,} sentences of {data.files[0]} appear in {name}"
            for name, own in keys.items()
            if (count := _common(scored, own))
        ]
    return lines


def _common(left: Keys, right: Keys) -> int:
    return int(among(left, right).sum())
