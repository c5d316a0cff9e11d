"""From vectors to scores. Whatever maps sentences to vectors can be scored: a model, a baseline, a function."""

from sentloom.evaluation.nearest import top_k
from sentloom.evaluation.retrieval import RetrievalResult, retrieval
from sentloom.evaluation.sts import Aggregation, StsResult, evaluate_sts
from sentloom.evaluation.sts_sets import StsSet, StsSuite, load_set, load_suite
from sentloom.evaluation.vectors import Encode

__all__ = [
    "Aggregation",
    "Encode",
    "RetrievalResult",
    "StsResult",
    "StsSet",
    "StsSuite",
    "evaluate_sts",
    "load_set",
    "load_suite",
    "retrieval",
    "top_k",
]
