"""Whole searches on six retrieval sets, on queries that nothing saw: the base, `fit`, words, a re-ranker, everything.

    python -m benchmarks.systems DATA [-o out/systems] [--sets TrecQA,SelQA] [--rows 260] [--fresh 160] [--steps 15]

DATA has qa/qa_pairs.en.tsv.gz. Of each set, `fit` gets some pairs and a budget in steps; other pairs, of which it has
seen neither question nor answer, are asked afterwards. Beside it is what a plain script gets: sentence-transformers and
BM25, joined by reciprocal ranks. The re-ranker reads the first ten results of some of these queries; its weight is
chosen on the fit's validation rows. Latencies are of one query at a time, the searches taking turns.

Every finished set is kept in OUT as a JSON file, so that a run that was killed resumes; OUT/table.md has the tables.
"""

import argparse
import csv
import gzip
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from sentloom import Encoder, fit
from sentloom.encoder.locate import embedded_folder
from sentloom.encoder.system import Fusion, Reranking, System
from sentloom.errors import NothingToGain
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.fusion import WEIGHTS, SearchParts, best_weight, with_reranker
from sentloom.evaluation.reranking import sample_queries
from sentloom.evaluation.retrieval import MAIN, SearchSet, ranks_in, scores_of_ranks, search_set
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.significance import average_interval, compare_averages
from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.search.system import Index
from sentloom.search.words import WordIndex, stemming_of

SETS = ("TrecQA", "WikiQA", "SelQA", "QNLI.dev", "MedQuAD", "OpenTriviaQA")
LONGEST = 300  # characters of an answer: the sets are compared on one busy machine
DEPTH, CHOSEN_ON, RERANKED = 10, 20, 40  # results that the re-ranker reads; queries that choose its weight, and test it
RANK_FUSION = 60  # the usual constant of reciprocal ranks
TIMED = 40  # queries


@dataclass
class Bench:
    """Where things are and how much there is."""

    data: Path
    out: Path
    rows: int
    fresh: int
    steps: int

    def pairs(self, name: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """The pairs for `fit`, and others with no text in common."""
        with gzip.open(self.data / "qa" / "qa_pairs.en.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        pairs = [(asked, answer[:LONGEST]) for asked, answer, of in rows[1:] if of == name]
        order = np.random.default_rng(0).permutation(len(pairs)).tolist()
        cut = min(self.rows, int(0.6 * len(pairs)))
        train = [pairs[at] for at in order[:cut]]
        seen = {text for pair in train for text in pair}
        return train, [pairs[at] for at in order[cut:] if not seen & set(pairs[at])][: self.fresh]


def asked_of(pairs: list[tuple[str, str]], more: list[str]) -> SearchSet:
    """Questions, which search the answers of all; those that share an answer are one cluster."""
    asked, answers = zip(*pairs, strict=True)
    return search_set(Rows({"anchor": asked, "positive": answers}, "pairs"), corpus=more)


def rank_fusion(parts: SearchParts):
    """Reciprocal ranks of vectors and words, as many scripts join them."""
    cosines = parts.queries @ parts.documents.T
    words = WordIndex(parts.searched.documents).scores(parts.searched.queries)
    ranks = [np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1 for scores in (cosines, words)]
    fused = sum(RANK_FUSION / (RANK_FUSION + rank) for rank in ranks)
    return scores_of_ranks(parts.searched, ranks_in(fused, parts.searched.grades))


def run_set(bench: Bench, name: str) -> dict:
    """Fit, and score every search on the fresh queries."""
    place = bench.out / name
    place.mkdir(parents=True, exist_ok=True)
    train, fresh = bench.pairs(name)
    with (place / "train.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("question", "answer"), *train])
    try:
        done = fit(place / "train.csv", place / "model", budget=f"{bench.steps}steps", log=print)
    except NothingToGain:  # the base has the highest score on every test row: nothing is trained
        done = None
    memory, asked = open_memory(place / "memory"), asked_of(fresh, [answer for _, answer in train])
    base = Encoder.load("embedded")
    tuned = Encoder.load(place / "model.fit" / done.result.tested) if done else base
    stemming, chosen = stemming_of(asked.documents), {}
    validation = asked_of(train[: bench.rows // 4], [answer for _, answer in train])
    scores, parts = {}, {}
    weight = best_weight([SearchParts.of(validation, base, memory, stemming).ranked(WEIGHTS)])
    proven = done.result.system if done else None
    for label, encoder in {"base": base, "fit": tuned}.items():
        parts[label] = SearchParts.of(asked, encoder, memory, stemming)
        chosen[label] = proven.fusion.chosen if proven and proven.of_base == (label == "base") else weight
        plain, fused = parts[label].ranked([0.0, chosen[label]], DEPTH)
        scores |= {label: plain.scores[MAIN], f"{label} + words": fused.scores[MAIN]}
    scores["script: rank fusion"] = rank_fusion(parts["base"])[MAIN]
    reranked, weight = with_rerankers(parts, validation, chosen, base, memory, stemming)
    result = {
        "verdict": done.verdict if done else "nothing to gain, not trained",
        "reason": done.reason if done else "",
        "of_base": bool(proven and proven.of_base and proven.shown),
        "weights": chosen | {"re-ranker": weight},
        "gain": proven.fusion.gain if proven else None,
        "scores": {label: [score.value, *average_interval([score])] for label, score in scores.items()},
        "against base": {label: difference(score, scores["base"]) for label, score in scores.items()},
        "of some queries": reranked,
        "queries": len(asked.queries),
        "documents": len(asked.documents),
        "milliseconds": latencies(asked, base, parts["base"].documents, chosen["base"], stemming),
    }
    (bench.out / f"{name}.json").write_text(json.dumps(result, indent=1))
    return result


def difference(score, base) -> list[float]:
    gain = compare_averages([score], [base])
    return [gain.difference, gain.low, gain.high]


def with_rerankers(parts, validation, chosen, base, memory, stemming):
    """Fused base and fused fit with a re-ranker, on some of the fresh queries."""
    model = CrossEncoder.load("reranker")

    def score(pairs):
        return pair_scores(model, pairs, show_progress=True)

    few = sample_queries(validation, CHOSEN_ON)
    (first,) = SearchParts.of(few, base, memory, stemming).ranked([chosen["base"]], DEPTH)
    weight = best_weight([with_reranker(first, score, WEIGHTS)])
    asked, results, plain = sample_queries(parts["base"].searched, RERANKED), {}, None
    for label, of in parts.items():
        place = {query: row for row, query in enumerate(of.searched.queries)}
        rows = [place[query] for query in asked.queries]
        (ranked,) = SearchParts(asked, of.queries[rows], of.documents, of.words).ranked([chosen[label]], DEPTH)
        before, after = with_reranker(ranked, score, [0.0, weight])
        plain = plain or before.scores[MAIN]
        results[f"{label} + words"] = [before.scores[MAIN].value, *difference(before.scores[MAIN], plain)]
        results[f"{label} + words + re-ranker"] = [after.scores[MAIN].value, *difference(after.scores[MAIN], plain)]
    return results, weight


def latencies(asked: SearchSet, encoder: Encoder, documents, words: float, stemming: str) -> dict[str, list[float]]:
    """Milliseconds of a query, p50 and p95; the systems take turns."""
    systems = {
        "vectors": System(),
        "vectors + words": System(Fusion(words or 0.3, stemming)),
        "vectors + words + re-ranker": System(Fusion(words or 0.3, stemming), Reranking("reranker", 0.5, DEPTH)),
    }
    indexes = {name: Index(asked.documents, documents, system).ready() for name, system in systems.items()}
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for query in asked.queries[:TIMED]:
        for name, index in indexes.items():
            began = time.perf_counter()
            index.find([query], encoder.encode([query], role="query"), 10)
            taken[name].append(1000 * (time.perf_counter() - began))
    return {name: [median(times), float(np.percentile(times, 95))] for name, times in taken.items()}


def table(results: dict[str, dict]) -> str:
    """The tables of all finished sets."""
    labels = ["base", "script: rank fusion", "base + words", "fit", "fit + words"]
    lines = [f"| set | {' | '.join(labels)} | fit says |", "|---|" + "---:|" * len(labels) + "---|"]
    for name, result in results.items():
        cells = []
        for label in labels:
            value, (gain, low, high) = result["scores"][label][0], result["against base"][label]
            cells.append(f"{value:.1f}" + ("" if label == "base" else f" ({gain:+.1f}: {low:+.1f} to {high:+.1f})"))
        verdict = f"{result['verdict']}{', the base with words' if result['of_base'] else ''}"
        lines.append(f"| {name}, {result['queries']} queries | {' | '.join(cells)} | {verdict} |")
    labels = list(next(iter(results.values()))["of some queries"])
    lines += ["", f"| set | {' | '.join(labels)} | weight |", "|---|" + "---:|" * (len(labels) + 1)]
    for name, result in results.items():
        shown = result["of some queries"].values()
        cells = [f"{value:.1f} ({gain:+.1f}: {low:+.1f} to {high:+.1f})" for value, gain, low, high in shown]
        lines.append(f"| {name} | {' | '.join(cells)} | {result['weights']['re-ranker']:g} |")
    lines += ["", "| set | " + " | ".join(next(iter(results.values()))["milliseconds"]) + " |", "|---|---:|---:|---:|"]
    for name, result in results.items():
        cells = [f"{half:.0f} / {late:.0f} ms" for half, late in result["milliseconds"].values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the sets that are not there yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/systems"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=260)
    parser.add_argument("--fresh", type=int, default=160)
    parser.add_argument("--steps", type=int, default=15)
    given = parser.parse_args()
    embedded_folder()
    bench = Bench(given.data, given.output, given.rows, given.fresh, given.steps)
    results = {}
    for name in given.sets.split(","):
        path = given.output / f"{name}.json"
        results[name] = json.loads(path.read_text()) if path.is_file() else run_set(bench, name)
        (given.output / "table.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
