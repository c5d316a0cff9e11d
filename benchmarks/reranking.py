"""Does the cross-encoder `reranker` rank better than the embedded encoder? Questions and answers of DATA/qa.

    python benchmarks/reranking.py DATA [SUBSET ...]

For each subset of qa_pairs.en.tsv.gz, 150 questions search all its answers, and the first 30 are re-ranked.
"""

import csv
import gzip
import sys
import time
from functools import partial
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.reranking import rerank, sample_queries
from sentloom.evaluation.retrieval import SearchSet, search_set
from sentloom.evaluation.set_source import Rows
from sentloom.search.cross_encoder import CrossEncoder, pair_scores

SUBSETS = ("WikiQA", "SelQA", "OpenTriviaQA", "MedQuAD")


def read_subset(data: Path, subset: str) -> SearchSet:
    """Questions, and all answers of the subset."""
    with gzip.open(data / "qa/qa_pairs.en.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["subset"] == subset]
    columns = {"anchor": [row["question"] for row in rows], "positive": [row["answer"] for row in rows]}
    return search_set(Rows(columns, subset))


def main(data: str, *subsets: str) -> None:
    """Print one line per subset."""
    base, memory = Encoder.load("embedded"), open_memory()
    judge = partial(pair_scores, CrossEncoder.load("reranker"))
    for subset in subsets or SUBSETS:
        searched, start = sample_queries(read_subset(Path(data), subset)), time.perf_counter()
        found = rerank(searched, base, judge, memory)
        took = f"{time.perf_counter() - start:.0f} s"
        print(f"{subset}, {len(searched.documents):,} answers: {found}; better: {found.better}; {took}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
