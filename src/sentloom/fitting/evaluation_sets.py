"""The sets that are scored besides held-out rows: those that the user named to decide, and one for general ability.

General ability is watched on STS-B in the user's data folder, or on 240 triplets of everyday English on mixed topics,
written for this package. The positive says the same as the anchor in other words. The negative is a near miss: it
shares most words with the positive (in every sixth row with the anchor) and means something else. The embedded encoder
scores 81.25, counting shared words 31.67.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path

from sentloom.data.columns import among
from sentloom.data.dataset import Dataset
from sentloom.data.readers import read
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.engine.evaluation_sets import sentences_of
from sentloom.evaluation.set_source import Rows, SetSource
from sentloom.evaluation.suites import find_task, load_suites
from sentloom.evaluation.task import Task
from sentloom.evaluation.user_tasks import triplet_task
from sentloom.fitting.clusters import Keys, clustered, distinct_keys
from sentloom.fitting.inputs import FitInput, percent
from sentloom.fitting.request import Log, Request

NAME = "general triplets"  # of our own
GENERAL_SET = "sts-b"  # looked for in the user's data folder


def read_against(request: Request, corpus: Sequence[str], log: Log) -> tuple[Task, ...]:
    """The evaluation sets that the user named to decide; say which parts of them are missing.

    `corpus` are more texts that the queries of files search.
    """
    tasks = read_sets(request.against, request.general, corpus, log)
    return tuple(_labelled(task, request) for task in tasks)


def read_sets(
    names: Sequence[str],
    folder: Path | None,
    corpus: Sequence[str],
    log: Log,
    only: Callable[[Dataset], Dataset] = lambda rows: rows,
) -> tuple[Task, ...]:
    """Sets from a data folder, and files of the user's own with their clusters, of which `only` some rows are asked."""
    clusters = _clustered_apart()
    suites = load_suites(names, SetSource(folder, clustered=lambda rows: clusters(only(rows)), corpus=corpus))
    for suite in suites:
        for name, why in suite.missing.items():
            log(f"{suite.name}: {name} is left out, {why}")
    return tuple(task for suite in suites for task in suite.tasks)


def _clustered_apart() -> Callable[[Dataset], Dataset]:
    """Cluster one set after the other: no number of one is used by another, since equal numbers are one cluster."""
    used = 0

    def next_clustered(data: Dataset) -> Dataset:
        nonlocal used
        numbered = clustered(data, used)
        used += len(data)
        return numbered

    return next_clustered


def _labelled(task: Task, request: Request) -> Task:
    """A task of rows in memory is called by what they are, not by the file that they were written to."""
    label = request.label(task.name)
    return task if label == task.name else replace(task, name=label, source=label)


def read_general(request: Request) -> Task:
    """What general ability is watched on: STS-B in the user's data folder, or the triplets that we wrote."""
    return find_task(GENERAL_SET, SetSource(request.general)) if request.general else general_task()


def general_task() -> Task:
    """How often a sentence is closer to one that says the same than to one that means something else."""
    data = general_rows()
    rows = Rows({name: data.column(name).to_pylist() for name in COLUMNS[Shape.TRIPLETS]}, NAME)
    return triplet_task(NAME, rows)


def general_rows() -> Dataset:
    """The triplets."""
    return read(Path(str(files("sentloom"))) / "general" / "triplets.tsv", shape=Shape.TRIPLETS)


def shared_sentences(inputs: Sequence[FitInput], tasks: Sequence[Task]) -> list[str]:
    """Which inputs have sentences in common, and which sentences of evaluation sets appear in an input."""
    keys = {fit_input.name: distinct_keys([fit_input.data]) for fit_input in inputs}
    own_columns = {fit_input.name for fit_input in inputs if fit_input.label_column}  # of the same files
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
