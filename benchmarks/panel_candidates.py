"""Label-free measures that need queries: written ones, agreement with a fused ranking, and a cross-encoder's view.

For `panel_correlation`. Queries search the corpus of a domain: its held-out sentences and some of its other texts.

- `written queries`: a query that the writer wrote for a held-out sentence finds it in the corpus (MRR@10).
- `fused, written` and `fused, sentences`: the rankings of the base and all routes are fused by reciprocal ranks; a
  model is scored by how well it ranks the ten best texts of the fused ranking (nDCG@10, the best has the gain 10).
  Queries are the written ones, or held-out sentences, which do not find themselves.
- `cross-encoder`: where the first results of base and model differ, whichever the cross-encoder prefers gets the point:
  the share of all queries won less the share lost. The base has 0. Only on domains where the cross-encoder beats the
  base on labels; `cross-encoder, anywhere` on all.
"""

from dataclasses import dataclass

import numpy as np

from sentloom.engine.artifacts import content_key
from sentloom.errors import MissingPart
from sentloom.evaluation.reranking import rerank, sample_queries
from sentloom.evaluation.retrieval import search_set
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.task import Score
from sentloom.fitting.panel import distinct_texts, text_key
from sentloom.lab import synthesize
from sentloom.search.nearest import top_k
from sentloom.writing.judges import FUSION
from sentloom.writing.ledger import Ledger

DEPTH = 50  # results of every query that are fused
K = 10
WRITTEN, FUSED_WRITTEN, FUSED_SENTENCES = "written queries", "fused, written", "fused, sentences"
CROSS, CROSS_ANYWHERE = "cross-encoder", "cross-encoder, anywhere"
SEARCHED, LABELLED = 500, 100  # labelled pairs, and queries of them that cross-encoder and base are compared on
COMBINATIONS = {  # mean ranks among the models of a domain; fixed before anything was measured
    "panel and fused, sentences": ("panel", FUSED_SENTENCES),
    "written queries and fused, written": (WRITTEN, FUSED_WRITTEN),
    "cross-encoder and fused, sentences": (CROSS, FUSED_SENTENCES),
    "all four": ("panel", WRITTEN, FUSED_SENTENCES, CROSS),
}


@dataclass(frozen=True)
class Asked:
    """What is asked of the models of a domain: texts to search, written queries with their sources, and sentences."""

    corpus: list
    written: list  # (query, number of its source in the corpus)
    sentences: list

    @property
    def sha256(self):
        return content_key(corpus=self.corpus, written=self.written, sentences=self.sentences)

    @property
    def queries(self):
        return [query for query, _ in self.written] + self.sentences

    @property
    def own(self):
        """The place of each query itself in the corpus, which is no result; -1 if it is not there."""
        place = {text_key(text): number for number, text in enumerate(self.corpus)}
        return np.array([place.get(text_key(query), -1) for query in self.queries])


def asked_of(held_out, texts, size, writer, folder, asked):
    """Held-out sentences come first in the corpus; queries are written for the first of them, if there is a writer."""
    corpus = list(distinct_texts([*held_out, *texts]).values())[:size]
    place = {text_key(text): number for number, text in enumerate(corpus)}
    pairs = [(query, place[text_key(source)]) for query, source in written_queries(held_out[:asked], writer, folder)]
    return Asked(corpus, pairs, list(dict.fromkeys(held_out)))


def written_queries(texts, writer, folder):
    """Each (query, source) as the writer wrote it: nothing is filtered, because the filters ask the base."""
    if not writer or not texts:
        return []
    try:
        how = {"kind": "query", "sampling": {"candidates": 1, "greedy": True}, "execution": {"encoder": "none"}}
        synthesize(list(texts), folder, writer=writer, filters={"round_trip": 0}, **how)
    except MissingPart as error:
        print(f"  no queries are written: {error.problem}", flush=True)
        return []
    rows = [row for table in Ledger.open(folder).tables() for row in table.to_pylist()]
    return list({row["text"].strip(): row["source_text"] for row in rows if row["text"].strip()}.items())


def rank(encoder, asked):
    """The first results of each query (q, DEPTH), by their numbers; no query finds itself."""
    queries, documents = encoder.encode(asked.queries), encoder.encode(asked.corpus)
    found = top_k(queries, documents, min(DEPTH + 1, len(asked.corpus)))[0]
    return [[int(one) for one in row if one != own][:DEPTH] for row, own in zip(found, asked.own, strict=True)]


def fuse(rankings):
    """The ten best of the sums of 1 / (60 + rank) over all models, for one query."""
    points = {}
    for ranking in rankings:
        for place, document in enumerate(ranking, 1):
            points[document] = points.get(document, 0.0) + 1 / (FUSION + place)
    return sorted(points, key=lambda document: (-points[document], document))[:K]


def ndcg(ranking, best):
    """How well the best texts are ranked; the first of them has the gain K, the last 1."""
    gains = {document: K - place for place, document in enumerate(best)}
    weights = 1 / np.log2(np.arange(2, K + 2))
    ideal = (np.arange(K, K - len(best), -1) * weights[: len(best)]).sum()
    return float(
        sum(gains.get(document, 0) * weight for document, weight in zip(ranking[:K], weights, strict=False)) / ideal
    )


def beats(encoder, pairs, score, memory):
    """Whether the cross-encoder ranks better than the base, on labelled pairs that no model is scored on.

    One text of a pair looks for the other; the base's first ten are re-ranked.
    """
    anchors, positives = zip(*pairs[:SEARCHED], strict=True)
    searched = search_set(Rows({"anchor": anchors, "positive": positives}, "labelled pairs"))
    return rerank(sample_queries(searched, LABELLED), encoder, score, memory, depth=K)


def candidates(rankings, routes, asked, score, trusted):
    """By model, the items of each measure (n,); `rankings` has those of all models, and the base is the first.

    The rankings of `routes` are fused. `trusted`: the cross-encoder beats the base on labels.
    """
    count = len(asked.written)
    best = [fuse(each) for each in zip(*(rankings[name] for name in routes), strict=True)]
    base = next(iter(rankings.values()))
    found = {}
    for name, own in rankings.items():
        agreed = [ndcg(*both) for both in zip(own, best, strict=True)]
        found[name] = {FUSED_SENTENCES: agreed[count:]}
        if count:
            sources = (source for _, source in asked.written)
            found[name][WRITTEN] = [reciprocal(row, source) for row, source in zip(own, sources, strict=False)]
            found[name][FUSED_WRITTEN] = agreed[:count]
        if score:
            found[name][CROSS_ANYWHERE] = preferred(own, base, asked, score)
            if trusted:
                found[name][CROSS] = found[name][CROSS_ANYWHERE]
    return {name: {key: np.array(items) for key, items in each.items()} for name, each in found.items()}


def reciprocal(ranking, source):
    """One over the rank of the source, 0 beyond the tenth."""
    return 1 / (1 + ranking.index(source)) if source in ranking[:K] else 0.0


def preferred(own, base, asked, score):
    """1 if the cross-encoder prefers the model's first result, -1 if it prefers the base's, 0 if they are the same."""
    firsts = [
        (query, asked.corpus[a[0]], asked.corpus[b[0]]) for query, a, b in zip(asked.queries, own, base, strict=True)
    ]
    differing = [number for number, (_, a, b) in enumerate(firsts) if a != b]
    pairs = [(firsts[number][0], firsts[number][side]) for number in differing for side in (1, 2)]
    scores = score(pairs)
    items = np.zeros(len(firsts))
    items[differing] = np.sign(np.subtract(scores[::2], scores[1::2]))
    return items


def as_plain(items):
    """As `panel_correlation` keeps scores."""
    score = Score("mean", items[:, None])
    return {"metric": score.metric, "value": score.value, "items": score.items.round(6).tolist()}


def with_combinations(tables):
    """Add the mean ranks of some measures to those of every model; a combination that lacks a measure is left out."""
    names = list(tables)
    for combined, parts in COMBINATIONS.items():
        if all(part in tables[names[0]] for part in parts):
            ranks = [_ranks([tables[name][part] for name in names]) for part in parts]
            for place, name in enumerate(names):
                tables[name][combined] = float(np.mean([each[place] for each in ranks]))
    return tables


def _ranks(values):
    """Mean ranks from 1, the greatest value last."""
    values = np.array(values)
    return [(values < one).sum() + ((values == one).sum() + 1) / 2 for one in values]
