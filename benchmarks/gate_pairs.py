"""How often `sentloom gate` gives each exit code, and rightly, for pairs of systems whose true difference is known.

    python -m benchmarks.gate_pairs [--pairs 20] [--margin 1]

A system is a file of scores per query, made so that its expected score is known: a fifth of the queries of a pair
change by chance, in steps as nDCG has them, and the rest are equal in both, so that the two correlate at about 0.8.
Equal pairs have the same expected score; different ones are 3 points apart, half of them better and half worse. Uses
are not counted across pairs, since every pair stands for another data set.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

LEVELS = np.array([0.0, 0.289, 0.387, 0.5, 0.631, 1.0])  # nDCG@10 of one relevant text at several ranks
CHANGED = 0.2
SIZES = (200, 500, 2000)  # queries


def pair_of_scores(numbers, size, points):
    """Two systems: the second one's expected score is `points` higher."""
    old = numbers.choice(LEVELS, size, p=[0.25, 0.05, 0.1, 0.1, 0.2, 0.3])
    new = np.where(numbers.random(size) < CHANGED, numbers.permutation(old), old)
    lifted = numbers.random(size) < abs(points) / 100 / (np.mean(1 - new) if points > 0 else np.mean(new))
    return old, np.where(lifted, 1.0 if points > 0 else 0.0, new)


def run(place, numbers, size, points, margin):
    """The finding and the exit code for one pair."""
    from sentloom.evaluation.evaluate import open_memory
    from sentloom.systems.gate import gate

    os.environ["SENTLOOM_CACHE"] = str(place)
    rows = [(f"question {n}", f"answer {n}") for n in range(size)]
    (place / "faq.tsv").write_text("question\tanswer\n" + "\n".join("\t".join(row) for row in rows))
    files = []
    for name, values in zip(("old", "new"), pair_of_scores(numbers, size, points), strict=True):
        lines = [
            json.dumps({"query": row[0], "score": value}) for row, value in zip(rows, values.tolist(), strict=True)
        ]
        files.append(place / f"{name}.jsonl")
        files[-1].write_text("\n".join(lines))
    names = (str(files[0]), str(files[1]), [str(place / "faq.tsv")])
    return gate(*names, lambda line: None, margin=margin, memory=open_memory(place)).finding


def main() -> None:
    """Print the findings for every number of queries and every true difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--margin", type=float, default=1.0)
    given = parser.parse_args()
    findings = ("better", "no worse", "worse", "cannot tell")
    print(f"| queries | true difference | {' | '.join(findings)} | wrong |\n|---:|---:|{'---:|' * 5}")
    for size in SIZES:
        for sign, points in ((0, 0.0), (1, 3.0), (-1, -3.0)):
            pairs = given.pairs if not sign else given.pairs // 2
            numbers, counts = np.random.default_rng([size, sign + 1]), Counter()
            for _ in range(pairs):
                with tempfile.TemporaryDirectory() as folder:
                    counts[run(Path(folder), numbers, size, points, given.margin)] += 1
            wrong = {
                0: counts["better"] + counts["worse"],
                1: counts["worse"],
                -1: counts["better"] + counts["no worse"],
            }
            print(
                f"| {size:,} | {points:+.0f} | {' | '.join(str(counts[name]) for name in findings)} | {wrong[sign]} |"
            )


if __name__ == "__main__":
    main()
