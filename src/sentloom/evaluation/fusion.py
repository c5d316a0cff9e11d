"""What words and a re-ranker add to vectors: the scores of a search set with every weight that they may have."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from sentloom.evaluation.bench import Memory, Model, vectors_of
from sentloom.evaluation.reranking import reranked
from sentloom.evaluation.retrieval import MAIN, Places, SearchSet, ranks_in, scores_of_ranks
from sentloom.evaluation.task import Scores
from sentloom.search.cross_encoder import PairScores
from sentloom.search.system import CELLS, scaled
from sentloom.search.vectors import Vectors, normalised
from sentloom.search.words import WordIndex

# More of the small ones: the cosines of some encoders are close together, and a small share of words says enough.
WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Ranked:
    """How a search ranks the documents of a set: the relevant ones, and those that come first."""

    searched: SearchSet
    relevant: list[tuple[Places, Places]]  # of each query: the ranks, ascending, and the document at each
    first: Places  # (queries, depth)
    first_scores: npt.NDArray[np.float32]

    @property
    def scores(self) -> Scores:
        """nDCG@10 and the other scores."""
        return scores_of_ranks(self.searched, self.relevant)


@dataclass(frozen=True)
class SearchParts:
    """A search set with the vectors and the words of its texts."""

    searched: SearchSet
    queries: Vectors
    documents: Vectors
    words: WordIndex

    @classmethod
    def of(cls, searched: SearchSet, model: Model, memory: Memory, stemming: str) -> "SearchParts":
        """The parts of a set for a model, whose vectors are cached."""
        queries = vectors_of(model, searched.queries, "query", memory)
        documents = vectors_of(model, searched.documents, "document", memory)
        return cls(searched, queries, documents, WordIndex(searched.documents, stemming))

    def ranked(self, weights: Sequence[float], depth: int = 1) -> list[Ranked]:
        """The ranking with each weight of the words; ties count against the system."""
        depth, documents = min(depth, len(self.documents)), normalised(self.documents)
        relevant: list[list[tuple[Places, Places]]] = [[] for _ in weights]
        first: list[list[tuple[Places, npt.NDArray[np.float32]]]] = [[] for _ in weights]
        step = max(1, CELLS // max(1, len(documents)))
        for start in range(0, len(self.queries), step):
            block = slice(start, start + step)
            cosines = normalised(self.queries[block]) @ documents.T
            dense, words = scaled(cosines), scaled(self.words.scores(self.searched.queries[block]))
            for at, weight in enumerate(weights):
                scores = (1 - weight) * dense + weight * words if weight else cosines
                relevant[at] += ranks_in(scores, self.searched.grades[block])
                rows = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
                first[at].append((rows, np.take_along_axis(scores, rows, axis=1)))
        return [
            Ranked(self.searched, own, *(np.concatenate(side) for side in zip(*parts, strict=True)))
            for own, parts in zip(relevant, first, strict=True)
        ]


def with_reranker(ranked: Ranked, score: PairScores, weights: Sequence[float]) -> list[Ranked]:
    """The same ranking, whose first documents are ranked again with each weight of the re-ranker."""
    searched = ranked.searched
    pairs = [
        (query, searched.documents[place])
        for query, places in zip(searched.queries, ranked.first.tolist(), strict=True)
        for place in places
    ]
    before, again = scaled(ranked.first_scores), scaled(score(pairs).reshape(ranked.first.shape))
    results = []
    for weight in weights:
        scores = (1 - weight) * before + weight * again
        own = zip(ranked.relevant, ranked.first, scores, strict=True)
        results.append(Ranked(searched, [reranked(*parts) for parts in own], ranked.first, scores))
    return results


def best_weight(rankings: Sequence[Sequence[Ranked]], weights: Sequence[float] = WEIGHTS) -> float:
    """The weight with the best mean nDCG@10 over several sets; among equals the least."""
    means = [fmean(ranked.scores[MAIN].value for ranked in of_weight) for of_weight in zip(*rankings, strict=True)]
    return max(zip(weights, means, strict=True), key=lambda pair: (round(pair[1], 6), -pair[0]))[0]
