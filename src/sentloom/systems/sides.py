"""What a name opens: a search that can be scored beside others.

A name is an encoder, the folder of a fit (the model that its gate tested), bm25, the address of an endpoint that gives
vectors, or a file of results per query. Parts are joined by +, as in embedded+bm25 or MODEL+bm25+reranker.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from sentloom.encoder import Encoder
from sentloom.encoder.locate import refuse_absent
from sentloom.encoder.system import VECTORS_ALONE, Fusion, Reranking, System
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, Model, cached_scores, score_tasks
from sentloom.evaluation.fusion import SearchParts, with_reranker
from sentloom.evaluation.reranking import DEPTH
from sentloom.evaluation.retrieval import SearchSet
from sentloom.evaluation.task import Scores, Task
from sentloom.fitting.clusters import Keys
from sentloom.fitting.stored import is_fit, read_fit, seen_keys, tested_encoder
from sentloom.fitting.system import system_of
from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.search.vectors import Vectors
from sentloom.search.words import stemming_of
from sentloom.systems.endpoint import EndpointModel, is_endpoint
from sentloom.systems.results_file import ResultsFile

BM25, JOIN = "bm25", "+"
FUSED = 0.3  # the weight of words where no validation rows choose it
RERANKED = 0.5


class Side(Protocol):
    """A search, or the results of one."""

    @property
    def identity(self) -> str:
        """A hash of everything that its scores depend on: equal ones are the same search."""

    def scores(self, tasks: Sequence[Task], memory: Memory) -> list[Scores]:
        """Its scores on each task."""


class NoVectors:
    """The encoder of a search by words alone: every text has the same vector."""

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Vectors of one dimension that say nothing."""
        return np.zeros((len(texts), 1), np.float32)

    def fingerprint(self) -> str:
        """The same for all."""
        return "no vectors"


@dataclass(frozen=True)
class Search:
    """An encoder with what its search runs besides vectors."""

    name: str
    model: Model
    system: System = VECTORS_ALONE
    seen: Keys = field(default_factory=lambda: np.empty(0, np.uint64))  # sentences that the model trained on

    @property
    def identity(self) -> str:
        """The encoder, and the weights of the other parts."""
        words, again = self.system.fusion, self.system.reranking
        parts = [f"words {words.weight:g} {words.stemming}" if words and words.weight else ""]
        parts.append(f"re-ranker {again.model} {again.depth} {again.weight:g}" if again and again.weight else "")
        return " ".join(filter(None, [self.model.fingerprint(), *parts]))

    def scores(self, tasks: Sequence[Task], memory: Memory) -> list[Scores]:
        """Tasks that search are scored by the whole system, others by vectors. Vectors and scores are cached."""
        if not (self.system.word_weight or self.system.rerank_weight):
            return score_tasks(self.model, tasks, memory, show_progress=True)
        return [self._scores(task, memory) for task in tasks]

    def _scores(self, task: Task, memory: Memory) -> Scores:
        searched = task.searched
        if searched is None:
            if isinstance(self.model, NoVectors):
                raise InputError(BM25, "words alone give no vectors", "data that is searched", "leave it out")
            return score_tasks(self.model, [task], memory, show_progress=True)[0]
        return cached_scores(memory.scores, self.identity, task, lambda: self._searched(searched, memory))

    def _searched(self, searched: SearchSet, memory: Memory) -> Scores:
        fusion, again = self.system.fusion, self.system.reranking
        parts = SearchParts.of(searched, self.model, memory, fusion.stemming if fusion else "")
        depth = again.depth if again and again.weight else 1
        (ranked,) = parts.ranked([self.system.word_weight], depth)
        if again and again.weight:
            score = partial(pair_scores, CrossEncoder.load(again.model), show_progress=True)
            (ranked,) = with_reranker(ranked, score, [again.weight])
        return ranked.scores


def open_side(name: str) -> Side:
    """Open what a name means; words and re-rankers have usual weights, since there is nothing to choose them on."""
    if is_endpoint(name):
        return Search(name, EndpointModel.open(name))
    if is_fit(name):
        return _of_fit(name)
    if Path(name).is_file():
        return ResultsFile.read(Path(name))
    return open_search(name)


def open_search(name: str) -> Search:
    """An encoder, words, or both, and a re-ranker."""
    first, *others = [name] if Path(name).exists() or is_endpoint(name) else name.split(JOIN)
    if not all([first, *others]):
        raise InputError(name, "a part has no name", "as in embedded+bm25", "correct it")
    rerankers = [other for other in others if other != BM25]
    if len(rerankers) > 1 or others.count(BM25) > 1:
        raise InputError(name, "it has more parts than a search can have", "MODEL+bm25+RERANKER", "leave one out")
    for other in (*rerankers, *([] if first == BM25 or is_endpoint(first) else [first])):
        refuse_absent(other)
    reranking = Reranking(rerankers[0], RERANKED, DEPTH) if rerankers else None
    if first == BM25:
        return Search(name, NoVectors(), System(Fusion(1.0), reranking))
    if is_endpoint(first):
        return Search(name, EndpointModel.open(first))
    encoder = Encoder.load(first)
    own = encoder.system if name == first else VECTORS_ALONE
    system = System(Fusion(FUSED) if BM25 in others else own.fusion, reranking or own.reranking)
    return Search(name, encoder, system, _seen(Path(f"{first}.fit")))


def _of_fit(name: str) -> Search:
    """The model that the gate of a fit tested, or the base if that was what was better."""
    folder, result = Path(name), read_fit(Path(name))
    proven = result.system
    if proven and proven.of_base and proven.shown:
        return Search(name, Encoder.load(result.base), system_of(proven), seen_keys(folder))
    system = system_of(proven) if proven and not proven.of_base else VECTORS_ALONE
    return Search(name, tested_encoder(folder, result), system, seen_keys(folder))


def _seen(folder: Path) -> Keys:
    """What a model trained on, if its fit is beside it."""
    return seen_keys(folder) if (folder / "data").is_dir() else np.empty(0, np.uint64)


def stemmed(search: Search, tasks: Sequence[Task]) -> Search:
    """The same search with the stemmer for the language of what is searched, if it has words but no stemmer."""
    fusion = search.system.fusion
    documents = next((task.searched.documents for task in tasks if task.searched), None)
    if fusion is None or fusion.stemming or documents is None:
        return search
    return replace(search, system=replace(search.system, fusion=replace(fusion, stemming=stemming_of(documents))))
