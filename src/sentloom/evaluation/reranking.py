"""Whether a cross-encoder ranks better than an encoder: it re-ranks what the encoder finds first.

A teacher that ranks worse than its student has nothing to teach, so it is used only where this shows a gain.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sentloom.evaluation.bench import Memory, Model, vectors_of
from sentloom.evaluation.retrieval import MAIN, Places, SearchSet, ranked_relevant, scores_of_ranks
from sentloom.evaluation.significance import Comparison, are_enough, compare_averages
from sentloom.evaluation.task import Score
from sentloom.search.cross_encoder import PairScores
from sentloom.search.nearest import top_k

DEPTH = 30  # documents per query that are re-ranked
MOST_QUERIES = 150
SEED = 0  # of the sample of queries


@dataclass(frozen=True)
class Reranking:
    """nDCG@10 of the same queries, ranked by an encoder and re-ranked by a cross-encoder."""

    before: Score
    after: Score

    @cached_property
    def comparison(self) -> Comparison:
        """The difference, paired over clusters."""
        return compare_averages([self.after], [self.before])

    @property
    def better(self) -> bool:
        """Whether the cross-encoder is shown to rank better: the whole interval is above 0, from enough clusters."""
        return self.comparison.low > 0 and are_enough(self.comparison.clusters)

    def __str__(self) -> str:
        gain, queries = self.comparison, len(self.before.items)
        scores = f"nDCG@10 {self.before.value:.2f} by the encoder, {self.after.value:.2f} re-ranked"
        return f"{scores}: {gain.difference:+.2f} ({gain.low:+.2f} to {gain.high:+.2f}, {queries:,} queries)"


def rerank(searched: SearchSet, model: Model, score: PairScores, memory: Memory, *, depth: int = DEPTH) -> Reranking:
    """Rank the documents of each query by the model, and its first `depth` again by the scores of pairs."""
    queries = vectors_of(model, searched.queries, "query", memory)
    documents = vectors_of(model, searched.documents, "document", memory)
    first, _ = top_k(queries, documents, depth)  # (q, depth)
    pairs = [
        (query, searched.documents[place])
        for query, places in zip(searched.queries, first, strict=True)
        for place in places.tolist()
    ]
    scores = score(pairs).reshape(first.shape)
    before = ranked_relevant(queries, documents, searched.grades)
    after = [reranked(*parts) for parts in zip(before, first, scores, strict=True)]
    return Reranking(*(scores_of_ranks(searched, ranked)[MAIN] for ranked in (before, after)))


def reranked(before: tuple[Places, Places], first: Places, scores: npt.NDArray[np.float32]) -> tuple[Places, Places]:
    """The ranks of a query's relevant documents, ascending, and the document at each, if its `first` are re-ranked.

    Ties count against the cross-encoder. Documents that are not among the first stay behind them.
    """
    ranks, documents = before
    order = sorted(range(len(first)), key=lambda place: (-scores[place], first[place] in documents))
    new = {int(first[place]): rank for rank, place in enumerate(order, 1)}
    reordered = np.array(
        [new.get(int(place), max(int(rank), len(first) + 1)) for rank, place in zip(ranks, documents, strict=True)]
    )
    ascending = np.argsort(reordered, kind="stable")
    return reordered[ascending], documents[ascending]


def sample_queries(searched: SearchSet, most: int = MOST_QUERIES) -> SearchSet:
    """The set with at most `most` of its queries; they search the same documents."""
    if len(searched.queries) <= most:
        return searched
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(searched.queries))[:most])
    return replace(
        searched,
        queries=[searched.queries[at] for at in chosen],
        grades=[searched.grades[at] for at in chosen],
        clusters=searched.clusters[chosen],
    )
