"""Step 5, the teacher: a cross-encoder teaches only if it is shown to rank validation queries better than the base."""

import time
from collections.abc import Sequence

from sentloom.encoder import Encoder
from sentloom.errors import MissingPart
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.reranking import DEPTH, MOST_QUERIES, rerank, sample_queries
from sentloom.evaluation.suites.search import SearchSet
from sentloom.evaluation.task import Task
from sentloom.fitting.request import Budget, Log
from sentloom.fitting.resources import Teacher
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.pair_scores import pair_scores

SHARE = 0.1  # of a time budget, for the test
FEWEST_QUERIES = 40
TIMED_PAIRS = 8


def find_teacher(
    name: str, validation: Sequence[Task], base: Encoder, memory: Memory, budget: Budget, log: Log = lambda line: None
) -> Teacher:
    """Let the cross-encoder re-rank what the base finds for the validation queries, as many as there is time for."""
    sets = [task.searched for task in validation if task.searched is not None]
    searched = max(sets, key=lambda one: len(one.queries), default=None)
    if searched is None:
        return Teacher(name, "there are no validation queries on which a teacher could be compared with the base")
    try:
        model = CrossEncoder.load(name)
    except MissingPart as error:
        return Teacher(name, f"{error.problem}; {error.fix}")
    most = _affordable_queries(model, searched, budget)
    if most < min(FEWEST_QUERIES, len(searched.queries)):
        return Teacher(
            name, f"the budget has time to test the teacher on {most} queries, and it needs {FEWEST_QUERIES}"
        )
    log(f"\nTesting the teacher {name} ...")
    found = rerank(sample_queries(searched, most), base, lambda pairs: pair_scores(model, pairs), memory)
    log(f"  {found}")
    return Teacher(name, None if found.better else f"the teacher is not shown to rank better than the base: {found}")


def _affordable_queries(model: CrossEncoder, searched: SearchSet, budget: Budget) -> int:
    if budget.seconds is None:
        return MOST_QUERIES
    pairs = list(zip(searched.queries, searched.documents, strict=False))[:TIMED_PAIRS]
    start = time.perf_counter()
    model.score(pairs)
    each = DEPTH * (time.perf_counter() - start) / len(pairs)
    return min(MOST_QUERIES, int(SHARE * budget.seconds / each))
