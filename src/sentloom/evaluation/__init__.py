"""From vectors to scores. Whatever maps sentences to vectors can be scored: a model, a baseline, a function."""

from sentloom.evaluation.retrieval import RetrievalResult, retrieval
from sentloom.search.nearest import top_k
from sentloom.search.vectors import Encode

__all__ = ["Encode", "RetrievalResult", "retrieval", "top_k"]
