"""Summaries of a synthesis with known counts."""

from sentloom.writing.filters import Filtering
from sentloom.writing.triplets import KindSummary, Sample, Summary

KEPT = [Sample("A man [bold]plays", "A man makes music.", 0.97, "")]


DROPPED = [Sample("A man plays", f"number {at}", 0.31, "score") for at in range(7)]


ENTAILMENT = KindSummary(60, {"score": 30, "equal": 10}, [0] * 5 + [20] + [0] * 12 + [20, 60], KEPT, DROPPED)


CONTRADICTION = KindSummary(25, {"score": 70, "empty": 5}, [30] + [0] * 8 + [45] + [0] * 9 + [25], [], DROPPED)


KINDS = {"entailment": ENTAILMENT, "contradiction": CONTRADICTION}


SUMMARY = Summary(100, 1000, 20, 35, Filtering(threshold=0.9), KINDS)


NOTHING = KindSummary(0, {}, [0] * 20, [], [])
EMPTY = Summary(0, 10, 0, 0, Filtering(), {"entailment": NOTHING, "contradiction": NOTHING})


QUERY = Sample("Long. " * 40, "A title", 1.0, "", "title", 3.21)
RELEVANCE = {-14: 3, -11: 1, 2: 2, 3: 3, 12: 1}
QUERIES = Summary(
    10, 10, 0, 6, Filtering(), {"query": KindSummary(6, {"vague": 4}, [4] + [0] * 18 + [6], [QUERY], [], 900, 70, RELEVANCE)}, 1234
)  # fmt: skip
