"""Label-free measures that need queries: written ones, agreement with a fused ranking, and a cross-encoder's view.

For `panel_correlation`. Queries search the corpus of a domain: its held-out sentences and some of its other texts.

- `written queries`: a query that the writer wrote for a held-out sentence finds it in the corpus (MRR@10).
- `fused, written` and `fused, sentences`: the rankings of all models of a domain are fused by reciprocal ranks; a model
  is scored by how well it ranks the ten best texts of the fused ranking (nDCG@10, the best has the gain 10). Queries
  are the written ones, or held-out sentences, which do not find themselves.
- `cross-encoder`: where the first results of base and model differ, whichever the cross-encoder prefers gets the point:
  the share of all queries won less the share lost. The base has 0.
"""

import json
from dataclasses import dataclass

import numpy as np

from sentloom import synthesize
from sentloom.errors import MissingPart
from sentloom.evaluation.task import Score
from sentloom.files import new_file
from sentloom.fitting.panel import text_key
from sentloom.pipeline.artifacts import content_key
from sentloom.search.nearest import top_k
from sentloom.writing.ledger import Ledger
from sentloom.writing.round_trip import FUSION

DEPTH = 50  # results of every query that are fused
K = 10
WRITTEN, FUSED_WRITTEN, FUSED_SENTENCES, CROSS = (
    "written queries",
    "fused, written",
    "fused, sentences",
    "cross-encoder",
)
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
    corpus = list({text_key(text): text for text in reversed([*held_out, *texts])}.values())[::-1][:size]
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


class Preferences:
    """What the cross-encoder thinks of a query and a text, kept in a file: models share most of their results."""

    def __init__(self, cross_encoder, path):
        self.score, self.path = cross_encoder.score, path
        self.known = dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}

    def of(self, pairs):
        """The scores of pairs, in order."""
        missing = list(dict.fromkeys(pair for pair in pairs if _key(pair) not in self.known))
        if missing:
            self.known |= dict(zip(map(_key, missing), self.score(missing).tolist(), strict=True))
            with new_file(self.path) as part:
                part.write_text(json.dumps(self.known), "utf-8")
        return [self.known[_key(pair)] for pair in pairs]


def _key(pair):
    return "\t".join(pair)


def candidates(rankings, asked, preferences):
    """By model, the items of each measure (n,); `rankings` has those of all models, and the base is the first."""
    count = len(asked.written)
    best = [fuse(each) for each in zip(*rankings.values(), strict=True)]
    base = next(iter(rankings.values()))
    found = {}
    for name, own in rankings.items():
        agreed = [ndcg(*both) for both in zip(own, best, strict=True)]
        found[name] = {FUSED_SENTENCES: agreed[count:]}
        if count:
            sources = (source for _, source in asked.written)
            found[name][WRITTEN] = [reciprocal(row, source) for row, source in zip(own, sources, strict=False)]
            found[name][FUSED_WRITTEN] = agreed[:count]
        if preferences:
            found[name][CROSS] = preferred(own, base, asked, preferences)
    return {name: {key: np.array(items) for key, items in each.items()} for name, each in found.items()}


def reciprocal(ranking, source):
    """One over the rank of the source, 0 beyond the tenth."""
    return 1 / (1 + ranking.index(source)) if source in ranking[:K] else 0.0


def preferred(own, base, asked, preferences):
    """1 if the cross-encoder prefers the model's first result, -1 if it prefers the base's, 0 if they are the same."""
    firsts = [
        (query, asked.corpus[a[0]], asked.corpus[b[0]]) for query, a, b in zip(asked.queries, own, base, strict=True)
    ]
    differing = [number for number, (_, a, b) in enumerate(firsts) if a != b]
    pairs = [(firsts[number][0], firsts[number][side]) for number in differing for side in (1, 2)]
    scores = preferences.of(pairs)
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
