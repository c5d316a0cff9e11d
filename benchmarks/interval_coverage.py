"""How often the intervals of sentloom are wrong: simulated coverage, false "better", power, and reused test rows.

    python benchmarks/interval_coverage.py [-o out/interval-coverage] [--simulations 2000]

Every line simulates a base and a tuned model on rows that come in clusters, with a known true gain, and calls
`average_interval`, `compare_averages` and `smallest_gain` as `fit` does. "Before" is the percentile bootstrap over rows
(1,000 resamples), which these replaced. Finished lines are stored in OUT, so that a killed run resumes;
OUT/tables.md has the tables. Planned for 15 minutes of one core.
"""

import argparse
import json
import platform
import time
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np

from sentloom.evaluation.jackknife import MEANS, STATISTICS
from sentloom.evaluation.significance import average_interval, compare_averages, corrected_level, smallest_gain
from sentloom.evaluation.task import Score

RESAMPLES = 1000
POPULATION = 400_000  # rows from which the true value of a score is computed
BEFORE = 5  # the old method, which is slow and far off, gets one simulation in BEFORE
CANDIDATES = 12  # models among which validation rows choose

# ---------------------------------------------------------------- what is simulated


@dataclass(frozen=True)
class Rows:
    """How rows come in clusters: how many clusters, their sizes, and how much of a row is its cluster's."""

    clusters: int
    sizes: str = "1"  # a number, "1-50" (skewed, the largest at the 5% bound), or "half in 10"
    likeness: float = 0.3  # the share of the variance, before it becomes a score, that rows of a cluster share

    def numbers(self):
        """The cluster of each row."""
        return np.repeat(np.arange(self.clusters), sizes_of(self.clusters, self.sizes))


@cache
def sizes_of(clusters, kind):
    """The rows of each cluster. No cluster has more than 5% of all rows."""
    if kind == "1-50":
        sizes = np.clip(np.exp(np.random.default_rng(clusters).normal(1.0, 1.3, clusters)), 1, 50).astype(int)
    elif kind == "half in 10":
        return np.r_[np.full(10, (clusters - 10) // 10), np.ones(clusters - 10, int)]
    else:
        return np.full(clusters, int(kind))
    while sizes.max() > 0.05 * sizes.sum() and sizes.max() > 1:
        sizes = np.minimum(sizes, sizes.max() - 1)
    return sizes


def noise(rng, numbers, likeness):
    """One normal value for each row, correlated within clusters."""
    shared = rng.normal(size=int(numbers.max()) + 1)[numbers]
    return np.sqrt(likeness) * shared + np.sqrt(1 - likeness) * rng.normal(size=len(numbers))


def ndcg(latent):
    """nDCG@10 of the single right answer at a rank that grows with the latent value: many 0s and 1s."""
    rank = np.floor(np.exp(np.clip(latent, -1, 9))) + 1
    return np.where(rank <= 10, 1 / np.log2(1 + rank), 0.0)


def ranking(rng, rows, level=0.2, gain=0.0, moved=0.0):
    """A base and a tuned model that rank; those rows differ whose change is more than `moved` deviations."""
    numbers = rows.numbers()
    common, change = noise(rng, numbers, rows.likeness), noise(rng, numbers, rows.likeness)
    step = 0.5 * np.where(np.abs(change) > moved, change, 0.0) * (3 if moved else 1)
    both = ndcg(level + 1.6 * common + step), ndcg(level + 1.6 * common - step - gain)
    return [[Score("mean", one[:, None], clusters=numbers)] for one in both]


LOSE, WIN = NormalDist().inv_cdf(0.05), NormalDist().inv_cdf(1 - 0.05 / 0.37)


def lopsided(rng, rows):
    """No true gain, but 5% of the rows lose everything and 13.5% win a little."""
    numbers = rows.numbers()
    change = noise(rng, numbers, rows.likeness)
    after = np.where(change < LOSE, 0.0, np.where(change > WIN, 1.0, 0.63))
    before = np.where(change < LOSE, 1.0, 0.63)
    return [[Score("mean", one[:, None], clusters=numbers)] for one in (before, after)]


def labelled(rng, rows, metric="spearman", gain=0.0):
    """Two models whose outputs follow a gold value, or its sign, with noise that they partly share."""
    numbers = rows.numbers()
    gold, common = noise(rng, numbers, rows.likeness), noise(rng, numbers, rows.likeness)
    outputs = [gold * (1 + extra) + 0.8 * common + 0.6 * noise(rng, numbers, rows.likeness) for extra in (0, gain)]
    if metric not in ("spearman", "pearson"):
        gold = (gold > 0.5).astype(float)
    if metric in ("accuracy", "f1", "matthews"):
        outputs = [(output > 0.5).astype(float) for output in outputs]
    return [[Score(metric, np.stack([output, gold], axis=1), clusters=numbers)] for output in outputs]


def several(rng, rows, shared=True):
    """Three tasks: nDCG, Spearman and accuracy, on the same clusters or on each its own."""
    if shared:
        made = [ranking(rng, rows), labelled(rng, rows), labelled(rng, rows, "accuracy")]
    else:
        other = Rows(5 * rows.clusters, rows.sizes, rows.likeness)
        made = [ranking(rng, rows), labelled(rng, other), labelled(rng, rows, "accuracy")]
        for place, pair in enumerate(made):
            for (score,) in pair:
                np.add(score.clusters, 10**6 * place, out=score.clusters)
    return [[score for (score,) in (pair[side] for pair in made)] for side in (0, 1)]


# ---------------------------------------------------------------- one line of a table


def percentile_over_rows(base, tuned, level=0.95):
    """The method before: rows are drawn one by one. Intervals of the tuned score and of the gain."""
    drawn = [[replicates(score, place) for place, score in enumerate(some)] for some in (base, tuned)]
    before, after = (100 * np.mean(some, axis=0) for some in drawn)
    return [np.quantile(values, [(1 - level) / 2, (1 + level) / 2]) for values in (after, after - before)]


def replicates(score, place):
    counts = drawn_counts(len(score.items), place)
    if score.metric in MEANS:
        return MEANS[score.metric](score.items) @ counts / len(score.items)
    return STATISTICS[score.metric](score.items, counts)


@cache
def drawn_counts(n, place):
    rng = np.random.default_rng([0, place])
    drawn = rng.integers(0, n, (RESAMPLES, n)) * RESAMPLES + np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * RESAMPLES).reshape(n, RESAMPLES).astype(np.float64)


def mean_value(scores):
    return float(np.mean([score.value for score in scores]))


def truth(make, rows, **options):
    """The value of the tuned model on a population of clusters of one row; likeness does not change it."""
    rng = np.random.default_rng(1)
    return mean_value(make(rng, Rows(POPULATION, "1", 0.0), **options)[1])


def coverage(rng, times, make, rows, **options):
    """Shares of simulations: the interval has the true value, and a model that is no better is called better."""
    if make is several:
        value = np.mean([truth(ranking, rows), truth(labelled, rows), truth(labelled, rows, metric="accuracy")])
    else:
        value = truth(make, rows, **options)
    right = {"before": [], "after": []}
    for number in range(times):
        base, tuned = make(rng, rows, **options)
        found = compare_averages(tuned, base)
        right["after"].append(judged(value, average_interval(tuned), (found.low, found.high)))
        if number < times / BEFORE:
            right["before"].append(judged(value, *percentile_over_rows(base, tuned)))
    drawn_counts.cache_clear()
    return {way: np.mean(each, axis=0).tolist() for way, each in right.items()}


def judged(value, score, gain):
    return score[0] <= value <= score[1], gain[0] <= 0 <= gain[1], gain[0] > 0


def power(rng, times, rows, gain):
    """The true gain, how often it is called better, and the smallest gain that the base's scores promise."""
    population = ranking(np.random.default_rng(1), Rows(POPULATION, "1", 0.0), gain=gain)
    better, errors, values = 0, [], []
    for _ in range(times):
        base, tuned = ranking(rng, rows, gain=gain)
        better += compare_averages(tuned, base).low > 0
        errors.append(smallest_gain(base, correlation=0.5))  # where the factor of the correlation is 1
        values.append((base[0].value, tuned[0].value))
    true = mean_value(population[1]) - mean_value(population[0])
    correlation = float(np.corrcoef(np.transpose(values))[0, 1])
    promised = float(np.mean(errors) * np.sqrt(2 * (1 - correlation)))
    return {"gain": true, "better": better / times, "promised": promised, "correlation": correlation}


def candidates(rng, rows, number):
    """A base and tuned models without any true gain, on the same rows."""
    numbers = rows.numbers()
    common = noise(rng, numbers, rows.likeness)
    made = [ndcg(0.2 + 1.6 * common + 0.5 * noise(rng, numbers, rows.likeness)) for _ in range(number + 1)]
    base, *tuned = [[Score("mean", one[:, None], clusters=numbers)] for one in made]
    return base, tuned


def selection(rng, times, rows, rounds):
    """False "better" of the best of many models: proven on test rows, and on the rows that chose it."""
    number, wrong = CANDIDATES * rounds, np.zeros(2)
    for _ in range(times):
        base, tuned = candidates(rng, rows, number)
        best = tuned[int(np.argmax([one[0].value for one in tuned]))]
        fresh, (winner,) = candidates(rng, rows, 1)
        wrong += compare_averages(winner, fresh).low > 0, compare_averages(best, base).low > 0
    return {"models": number, "fresh": wrong[0] / times, "same": wrong[1] / times}


def reuse(rng, times, rows, uses, climbing=False):
    """At least one false "better" in `uses` uses of the same rows, without and with the corrected level.

    If climbing, each use tries a small change of the model that scored best on these very rows so far, which is what
    somebody does who looks at every test score; no change has a true effect.
    """
    wrong = np.zeros(2)
    for _ in range(times):
        numbers = rows.numbers()
        common, best = noise(rng, numbers, rows.likeness), noise(rng, numbers, rows.likeness)

        def model(own, common=common, numbers=numbers):
            return [Score("mean", ndcg(0.2 + 1.6 * common + 0.5 * own)[:, None], clusters=numbers)]

        base, ever = model(best), np.zeros(2, bool)
        for use in range(1, uses + 1):
            own = noise(rng, numbers, rows.likeness)
            own = np.sqrt(0.8) * best + np.sqrt(0.2) * own if climbing else own
            tuned = model(own)
            ever |= [compare_averages(tuned, base, level=each).low > 0 for each in (0.95, corrected_level(use))]
            best = own if climbing and tuned[0].value > model(best)[0].value else best
        wrong += ever
    return {"without": wrong[0] / times, "with": wrong[1] / times}


# ---------------------------------------------------------------- the tables

SIZES = (Rows(20), Rows(20, "8"), Rows(20, "50"), Rows(20, "50", 0.8), Rows(40, "1-50"), Rows(40, "1-50", 0.8))
SIZES += (Rows(100), Rows(100, "1-50"), Rows(100, "1-50", 0.8), Rows(300, "1-50"), Rows(1000), Rows(1000, "1-50"))
SIZES += (Rows(210, "half in 10"), Rows(210, "half in 10", 0.8))
KINDS = {
    "nDCG, mean 67": (ranking, {}),
    "nDCG, mean 92": (ranking, {"level": -1.6}),
    "nDCG, 88% unchanged": (ranking, {"moved": 1.555}),
    "lopsided": (lopsided, {}),
}
FEW = (Rows(20, "8"), Rows(40, "1-50"), Rows(100, "1-50"))


def described(rows):
    n = len(rows.numbers())
    return f"{rows.clusters:,} | {rows.sizes} | {n:,} | {rows.likeness if rows.sizes != '1' else 0:.1f}"


def coverage_lines():
    for kind, (make, options) in KINDS.items():
        for rows in SIZES:
            yield f"{kind} | {described(rows)}", coverage, {"make": make, "rows": rows, **options}


def metric_lines():
    for metric in ("accuracy", "f1", "matthews", "pearson", "spearman", "average-precision"):
        for rows in FEW:
            yield f"{metric} | {described(rows)}", coverage, {"make": labelled, "rows": rows, "metric": metric}


def task_lines():
    for shared in (True, False):
        for rows in FEW:
            name = "same clusters" if shared else "own clusters"
            yield (
                f"three tasks, {name} | {described(rows)}",
                coverage,
                {"make": several, "rows": rows, "shared": shared},
            )


def power_lines():
    for rows in (Rows(30, "1-50"), Rows(100, "1-50"), Rows(300, "1-50")):
        for gain in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
            yield f"{described(rows)} | {gain}", power, {"rows": rows, "gain": gain}


def selection_lines():
    for rounds in (1, 3, 10):
        yield f"{described(Rows(40, '1-50'))} | {rounds}", selection, {"rows": Rows(40, "1-50"), "rounds": rounds}


def reuse_lines():
    for climbing in (False, True):
        for uses in (1, 2, 5, 10, 20):
            name = "tries small changes of the best so far" if climbing else "tries a new model each time"
            options = {"rows": Rows(40, "1-50"), "uses": uses, "climbing": climbing}
            yield f"{name} | {described(Rows(40, '1-50'))} | {uses}", reuse, options


def percent(share):
    return f"{100 * share:.1f}"


def coverage_text(one):
    return " | ".join(percent(one[way][place]) for place in (0, 1, 2) for way in ("before", "after"))


def power_text(one):
    return f"{one['gain']:.2f} | {percent(one['better'])} | {one['promised']:.2f} | {one['correlation']:.2f}"


ROWS = "clusters | rows in each | rows | likeness"
COVERED = "score covered, before | after | gain covered, before | after | false better, before | after"
TABLES = {
    "Coverage and false better": (f"scores | {ROWS} | {COVERED}", coverage_lines, coverage_text, 1),
    "Other metrics": (f"metric | {ROWS} | {COVERED}", metric_lines, coverage_text, 0.25),
    "Several tasks": (f"mean of | {ROWS} | {COVERED}", task_lines, coverage_text, 0.5),
    "Power": (
        f"{ROWS} | shift | true gain | called better | smallest gain | correlation",
        power_lines,
        power_text,
        0.5,
    ),
    "Selection": (
        f"{ROWS} | rounds | models | false better on test rows | on the rows that chose",
        selection_lines,
        lambda one: f"{one['models']} | {percent(one['fresh'])} | {percent(one['same'])}",
        0.5,
    ),
    "Reuse of test rows": (
        f"who | {ROWS} | uses | any false better, without | with the correction",
        reuse_lines,
        lambda one: f"{percent(one['without'])} | {percent(one['with'])}",
        0.5,
    ),
}


def kept_line(out, title, name, function, times, options):
    """A line from OUT, or computed and kept. The random numbers depend on the line alone."""
    key = zlib.crc32(f"{title} {name} {times}".encode())
    path = out / f"{key:08x}.json"
    if not path.exists():
        found = function(np.random.default_rng(key), times, **options)
        path.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("out/interval-coverage"))
    parser.add_argument("--simulations", type=int, default=2000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began, page = time.monotonic(), []
    for title, (columns, lines, text, share) in TABLES.items():
        times = round(share * given.simulations)
        errors = [100 * np.sqrt(p * (1 - p) / times) for p in (0.95, 0.025)]
        page += [
            f"\n## {title}\n",
            f"{times:,} simulations; Monte-Carlo error {errors[0]:.2f} at 95%, {errors[1]:.2f} at 2.5%.\n",
        ]
        page += [f"| {columns} |", "|" + "---|" * (columns.count("|") + 1)]
        print("\n".join(page[-4:]), flush=True)
        for name, function, options in lines():
            page.append(f"| {name} | {text(kept_line(given.out, title, name, function, times, options))} |")
            print(page[-1], flush=True)
    page.append(f"\n{platform.processor() or platform.machine()}, {(time.monotonic() - began) / 60:.1f} minutes")
    (given.out / "tables.md").write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
