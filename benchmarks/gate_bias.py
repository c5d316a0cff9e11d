"""Whether the gain that `fit` claims is the gain that others find: 20 fits, each checked on rows that it never saw.

    python benchmarks/gate_bias.py DATA [-o out/gate-bias] [--fits 20]

Each fit gets another sample of trivia questions and answers (OpenTriviaQA of DATA/qa, without true or false), 1,000
pairs, of which `fit` itself holds out a tenth for its test. A second part, three times as large as that test, is held
back from `fit` altogether: whole clusters, so that no text of it was trained on. Both parts search the same corpus, the
answers of all 1,300 pairs. The gain on the second part is computed here with plain numpy. A finished fit is kept in
OUT, so that a run that was killed resumes. About 15 minutes of one quiet core.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
from scipy import stats

from sentloom import Encoder, fit, read
from sentloom.fitting.clusters import find_clusters, rows_of

SUBSET = "OpenTriviaQA"
GIVEN, HELD_BACK = 1000, 300
BUDGET = "30steps"


def sample(pairs, clusters, seed):
    """1,000 pairs for the fit and 300 to check it, without a cluster in common."""
    draw = np.random.default_rng(seed)
    order = np.concatenate([np.flatnonzero(clusters == one) for one in draw.permutation(np.unique(clusters))])
    given, rest = order[:GIVEN], order[GIVEN:]
    rest = rest[~np.isin(clusters[rest], clusters[given])][:HELD_BACK]
    return [pairs[at] for at in given], [pairs[at] for at in rest]


def ndcg(encoder, asked, corpus):
    """nDCG@10 of each question, by plain numpy."""
    place = {text: number for number, text in enumerate(corpus)}
    right = {}
    for question, answer in asked:
        right.setdefault(question, set()).add(place[answer])
    cosines = encoder.encode(list(right)) @ encoder.encode(corpus).T
    discounts = 1 / np.log2(np.arange(2, 12))
    found = []
    for row, relevant in zip(cosines, right.values(), strict=True):
        best = np.argsort(-row)[:10]
        found.append(discounts[np.isin(best, list(relevant))].sum() / discounts[: len(relevant)].sum())
    return 100 * np.array(found)


def one_fit(pairs, clusters, seed, folder):
    """What the fit claims, and what the rows that it never saw say."""
    os.environ["SENTLOOM_CACHE"] = str(folder / f"cache-{seed}")  # every fit is the first use of its own test rows
    given, asked = sample(pairs, clusters, seed)
    corpus = list(dict.fromkeys(answer for _, answer in [*given, *asked]))
    done = fit(read(given), folder / f"model-{seed}", budget=BUDGET, seed=seed, corpus=read(corpus), force=True)
    total, checked = (
        done.result.total,
        ndcg(done.encoder, asked, corpus) - ndcg(Encoder.load("embedded"), asked, corpus),
    )
    return {
        "claimed": total.difference,
        "low": total.low,
        "high": total.high,
        "clusters": total.clusters,
        "verdict": done.verdict,
        "validation": done.result.validation.difference,
        "found": float(checked.mean()),
        "error": float(checked.std(ddof=1) / np.sqrt(len(checked))),
        "questions": len(checked),
        "documents": total.documents,
    }


def summary(rows):
    """The bias with its interval over fits, and how often the two intervals are compatible."""
    claimed, found, errors = (np.array([row[name] for row in rows]) for name in ("claimed", "found", "error"))
    difference = claimed - found
    half = stats.t.isf(0.025, len(rows) - 1) * difference.std(ddof=1) / np.sqrt(len(rows))
    own = np.array([row["high"] - row["low"] for row in rows]) / (2 * 1.96)
    agree = np.abs(difference) <= 1.96 * np.sqrt(own**2 + errors**2)
    inflated = np.array([row["validation"] for row in rows]) - found
    return [
        f"claimed on the test rows {claimed.mean():+.2f}, found on the rows held back {found.mean():+.2f}",
        f"bias {difference.mean():+.2f} (95% interval over {len(rows)} fits {difference.mean() - half:+.2f} to "
        f"{difference.mean() + half:+.2f}); on the validation rows, which chose, {inflated.mean():+.2f}",
        f"claim and check within their joint 95% interval: {agree.sum()} of {len(rows)}",
        f"called better: {sum(row['verdict'] == 'better' for row in rows)} of {len(rows)}",
    ]


def _cells(data):
    return zip(data["subset"], data["positive"], strict=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/gate-bias"))
    parser.add_argument("--fits", type=int, default=20)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    data = read(arguments.data / "qa/qa_pairs.en.tsv.gz", keep=("subset",))
    asked = [subset == SUBSET and answer.lower() not in ("true", "false") for subset, answer in _cells(data)]
    data = data.select(np.array(asked))
    clusters = find_clusters([rows_of("qa", data)]).numbers[0]
    pairs = list(zip(data["anchor"], data["positive"], strict=True))
    rows = []
    for seed in range(1, arguments.fits + 1):
        path = arguments.output / f"fit-{seed}.json"
        if not path.exists():
            path.write_text(json.dumps(one_fit(pairs, clusters, seed, arguments.output)))
        rows.append(json.loads(path.read_text()))
        print(f"fit {seed}: claimed {rows[-1]['claimed']:+.2f} ({rows[-1]['low']:+.2f} to {rows[-1]['high']:+.2f}, "
              f"{rows[-1]['clusters']} clusters), found {rows[-1]['found']:+.2f}", flush=True)  # fmt: skip
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
