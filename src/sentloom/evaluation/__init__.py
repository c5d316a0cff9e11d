"""From vectors to scores. Whatever maps sentences to vectors can be scored: a model, a baseline, a function."""

from sentloom.evaluation.nearest import top_k
from sentloom.evaluation.retrieval import RetrievalResult, retrieval
from sentloom.evaluation.vectors import Encode

__all__ = ["Encode", "RetrievalResult", "retrieval", "top_k"]
