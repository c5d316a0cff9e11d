"""Tasks on pairs of sentences with a number: correlation with human scores, pair classification, ranking."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sentloom.encoder.tokens import Role
from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers, cosine_of_pairs, is_constant
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.task import CLUSTER, Kind, Lookup, Score, Scores, Task, TaskSettings

Roles = tuple[Role, Role]  # of the first and the second sentence
SYMMETRIC: Roles = ("symmetric", "symmetric")
SEARCH: Roles = ("query", "document")


def correlation_task(
    name: str,
    rows: Rows,
    groups: Sequence[str] | None = None,
    *,
    main: str = "spearman",
    each_group: bool = False,
) -> Task:
    """Build the task of correlating cosines with gold scores. `rows` has sentence1, sentence2 and score.

    `spearman` and `pearson` are over all pairs. With `groups`, the sub-set of each pair, there are also the averages of
    the correlations within sub-sets, unweighted (`spearman-mean`) and weighted by pairs (`spearman-wmean`); with
    `each_group` every sub-set also has its own score (`spearman news`).
    """
    notes = ("all gold scores are equal, which scores 0",) if is_constant(rows["score"]) else ()

    def score(items: Numbers) -> Scores:
        return {
            label: correlation
            for metric in ("spearman", "pearson")
            for label, correlation in _correlations(metric, items, groups, each_group, clusters_of(rows)).items()
        }

    return _task(name, main, rows.noted(notes), score, Kind.CORRELATION)


def detection_task(name: str, rows: Rows) -> Task:
    """Build the task of separating pairs labelled 1 from pairs labelled 0 by cosine, scored by average precision."""
    check_labels(name, rows)

    def score(items: Numbers) -> Scores:
        return {"average-precision": Score("average-precision", items, clusters=clusters_of(rows))}

    return _task(name, "average-precision", rows, score, Kind.DETECTION)


def ranking_task(name: str, rows: Rows, questions: Sequence[str], *, roles: Roles = SYMMETRIC) -> Task:
    """Build the task of ranking each question's candidates by cosine: `map` and `mrr` over answerable questions.

    A row is a question, a candidate and its label, 1 for a correct candidate and 0 otherwise; `questions` says which
    rows belong together. Ties count against the system: wrong candidates rank before correct ones.
    """
    check_labels(name, rows)
    numbers = _numbers(questions)
    together, ends = np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1]
    right = np.unique(numbers[np.asarray(rows["score"]) == 1])
    without = len(ends) + 1 - len(right)
    notes = (f"{without} questions without a correct candidate are left out",) if without else ()
    of_rows, first = clusters_of(rows), np.unique(numbers, return_index=True)[1]
    clusters = None if of_rows is None else of_rows[first][right]  # of the first row of each question

    def score(items: Numbers) -> Scores:
        candidates = np.split(items[together], ends)
        ranks = [_ranks(candidates[number]) for number in right]
        values = {
            "map": [[np.mean(np.arange(1, len(correct) + 1) / correct)] for correct in ranks],
            "mrr": [[1 / correct[0]] for correct in ranks],
        }
        return {metric: Score("mean", np.array(column), clusters=clusters) for metric, column in values.items()}

    return _task(name, "map", rows.noted(notes), score, Kind.RANKING, roles)


def clusters_of(rows: Rows) -> npt.NDArray[np.int64] | None:
    """The cluster of each row, if the rows have a column of clusters."""
    return np.array(rows[CLUSTER], np.int64) if CLUSTER in rows.columns else None


def is_binary(rows: Rows) -> bool:
    """Whether all scores are 0 or 1."""
    return set(rows["score"]) <= {0, 1}


def check_labels(name: str, rows: Rows) -> None:
    """Refuse pairs whose scores are not labels 0 and 1, or that all have the same label."""
    labels = sorted(set(rows["score"]))
    if labels != [0, 1]:
        shown = ", ".join(f"{label:g}" for label in labels[:6]) + (" ..." if len(labels) > 6 else "")
        where = name if name.endswith(rows.source) else f"{name} in {rows.source}"
        expected = "pairs labelled 0 and pairs labelled 1"
        raise InputError(where, f"the labels are {shown}", expected, "correct the label column")


def _task(
    name: str,
    main: str,
    rows: Rows,
    score: Callable[[Numbers], Scores],
    kind: Kind,
    roles: Roles = SYMMETRIC,
) -> Task:
    """Build a task whose items (n, 2) are the cosine and the gold score of each pair."""
    texts: dict[Role, list[str]] = {}
    for role, side in zip(roles, ("sentence1", "sentence2"), strict=True):
        texts.setdefault(role, []).extend(rows[side])

    def score_vectors(lookup: Lookup) -> Scores:
        left, right = lookup(rows["sentence1"], roles[0]), lookup(rows["sentence2"], roles[1])
        return score(np.column_stack([cosine_of_pairs(left, right), np.asarray(rows["score"], np.float64)]))

    return Task(name, main, texts, score_vectors, rows.source, rows.sha256, TaskSettings(kind), rows.notes)


def _correlations(
    metric: str,
    items: Numbers,
    groups: Sequence[str] | None,
    each_group: bool,
    clusters: npt.NDArray[np.int64] | None,
) -> Scores:
    scores = {metric: Score(metric, items, clusters=clusters)}
    if groups is None:
        return scores
    numbers = _numbers(groups)
    scores[f"{metric}-mean"] = Score(metric, items, numbers)
    scores[f"{metric}-wmean"] = Score(metric, items, numbers, weighted=True)
    for number, group in enumerate(dict.fromkeys(groups) if each_group else ()):
        scores[f"{metric} {group}"] = Score(metric, items[numbers == number])
    return scores


def _numbers(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number the names in order of first occurrence."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], np.int64)


def _ranks(items: Numbers) -> npt.NDArray[np.int64]:
    """Return the ranks of the correct candidates, from 1, ascending; wrong ones come first among equal cosines."""
    cosines, labels = items[:, 0], items[:, 1]
    order = np.lexsort((labels, -cosines))
    return np.flatnonzero(labels[order]).astype(np.int64) + 1
