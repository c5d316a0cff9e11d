"""`sentloom fit` against the short sentence-transformers script that a good engineer would write, on unseen rows.

    pip install --no-deps home-assistant-intents==2026.10.27
    python -m benchmarks.against_script DATA [-o out/against-script] [--budget 2m] [--sets medquad,intents] [--seeds 3]
                                             [--cores 1]

Both get the same rows of each set (`real_sets`), as a CSV file, and the same cores: all by default, or those that
--cores leaves them, so that the others are free for other work; rows are in proportion to the cores. The script
(`plain_scripts`) trains for the epochs that the time allows, at most four. Each runs as a process of its own, one after
another, in alternating order, and its wall time counts from the start of Python to the saved model. Models are scored
(`plain_scores`) on whole clusters of rows that neither saw. If `fit` writes no model, its score is that of the base.
With --half, `fit` also runs with half of the time that the script took.

Every finished run is kept in OUT as a JSON file, without its model, so that a run that was killed resumes;
OUT/table-BUDGET.md has the table. Two minutes, six sets and three seeds take about 90 minutes on two quiet cores, with
--half about 120; ten minutes, two sets and one seed about 50.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.plain_scores import item_clusters, item_scores, total
from benchmarks.real_sets import SETS
from sentloom.encoder.locate import embedded_folder

DEFAULT = "medquad,trivia,intents,stsb-de,tatoeba-de,nli"
LARGER = {"10m": 2}  # budget -> how many times the rows and the epochs of two minutes
CORES = 2  # on which the script takes about two minutes for the rows of `real_sets`
MOST_EPOCHS = 4
NO_MODEL = 3  # the exit code of a fit that shows no gain
RESAMPLES = 2000
ROOT = Path(__file__).parents[1]

# ---------------------------------------------------------------- running


def commands(train, model, kind, budget, epochs, seed):
    """The command of each contender."""
    fit = [sys.executable, "-m", "sentloom", "fit", train, "-o", model, "--seed", seed, "--budget"]
    plain = [sys.executable, "-m", "benchmarks.plain_scripts", kind, train, model, "--seed", seed]
    return {
        "script": [*plain, "--base", embedded_folder(), "--epochs", epochs],
        "fit": [*fit, budget],
        "half": fit,  # the script's time decides
    }


def timed(command, place):
    """Run a command with a cache of its own: its wall time, its CPU time, its exit code and the verdict of a fit."""
    environment = {**os.environ, "SENTLOOM_CACHE": str(place / "cache"), "HF_HUB_OFFLINE": "1"}
    log, used, start = place / "log.txt", os.times(), time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run([*map(str, command)], stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)
    seconds, now = time.perf_counter() - start, os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    lines = log.read_text("utf-8").splitlines()
    if done.returncode not in (0, NO_MODEL):
        raise SystemExit("\n".join([*lines[-20:], f"exit code {done.returncode}: {log}"]))
    verdict = next((line for line in reversed(lines) if line.startswith("VERDICT")), "")
    return {"seconds": seconds, "cpu": cpu, "exit": done.returncode, "verdict": verdict}


def contend(who, command, place, tables, base):
    """Run one contender and score its model, or the base if it wrote none; the model is deleted."""
    from sentence_transformers import SentenceTransformer

    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    print(f"{place.name}: {who} is running", flush=True)
    found = timed(command, place)
    model = place / "model"
    items = item_scores(SentenceTransformer(str(model), device="cpu"), *tables) if model.exists() else base
    for part in ("model", "cache", "model.fit/stages", "model.fit/measured", "model.checkpoints"):
        shutil.rmtree(place / part, ignore_errors=True)
    return {**found, "items": items}


def kept(path, make):
    """What is in a JSON file, or else is made and written there."""
    if not path.exists():
        made = make()
        path.write_text(json.dumps(made), "utf-8")
    return json.loads(path.read_text("utf-8"))


def tables_of(name, arguments):
    """Training rows and test rows of a set."""
    one = SETS[name]
    if arguments.rows:
        return one.split(arguments.data, arguments.rows, arguments.rows // 2)
    return one.split(arguments.data, one.train * LARGER.get(arguments.budget, 1) * arguments.cores // CORES)


def base_items(tables):
    from sentence_transformers import SentenceTransformer

    return item_scores(SentenceTransformer(str(embedded_folder()), device="cpu"), *tables)


def one_set(name, seed, number, arguments):
    """All contenders on one set under one seed; returns their records."""
    folder, tables = arguments.output, tables_of(name, arguments)
    train = folder / f"{name}-{arguments.budget}.csv"
    tables[0].write(train)
    base = kept(folder / f"{name}-{arguments.budget}-base.json", partial(base_items, tables))
    epochs = min(MOST_EPOCHS, SETS[name].epochs * LARGER.get(arguments.budget, 1))
    found = {"base": {"items": base}}
    for who in [*(["script", "fit"] if (seed + number) % 2 else ["fit", "script"]), *["half"] * arguments.half]:
        place = folder / f"{name}-{arguments.budget}-{seed}-{who}"
        command = commands(train, place / "model", tables[1].kind, arguments.budget, epochs, seed)[who]
        if who == "half":
            command = [*command, f"{found['script']['seconds'] / 2:.0f}s"]
        found[who] = kept(place.with_suffix(".json"), partial(contend, who, command, place, tables, base))
    return found


# ---------------------------------------------------------------- the table


def interval(metric, first, second, clusters, gold):
    """The 95% interval of the difference of two scores, each the mean over seeds, when whole clusters are resampled."""
    draw = np.random.default_rng(0)
    members = [np.flatnonzero(clusters == one) for one in np.unique(clusters)]
    found = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([members[one] for one in draw.integers(len(members), size=len(members))])
        found.append(mean_score(metric, first, gold, rows) - mean_score(metric, second, gold, rows))
    return np.percentile(found, [2.5, 97.5])


def mean_score(metric, runs, gold, rows=slice(None)):
    """The mean over seeds of the score of some items. runs: (seeds, n)."""
    return fmean(total(metric, run[rows], None if gold is None else gold[rows]) for run in np.asarray(runs))


def lines_of(name, records, arguments):
    """The lines of one set, one per metric; `records` has those of each seed."""
    train, test = tables_of(name, arguments)
    clusters = item_clusters(train, test)
    gold = np.array(test["score"], float) if test.kind == "scores" else None
    whos = ["base", "script", "fit", *["half"] * arguments.half]
    for place, metric in enumerate(records[0]["base"]["items"]):
        runs = {who: np.array([one[who]["items"][metric] for one in records]) for who in whos}
        score = {who: mean_score(metric, some, gold) for who, some in runs.items()}
        low, high = interval(metric, runs["fit"], runs["script"], clusters, gold)
        cells = [f"{score[who]:.2f}" for who in whos[:3]]
        cells += [f"{score['fit'] - score['script']:+.2f} ({low:+.2f} to {high:+.2f})"]
        cells += [f"{score[who]:.2f}" for who in whos[3:]]
        known = "yes" if SETS[name].known else "no"
        first = [name, test.kind, known] if place == 0 else ["", "", ""]
        times = [cost(records, who) if place == 0 else "" for who in whos[1:]]
        verdicts = "; ".join(short(one["fit"]["verdict"]) for one in records) if place == 0 else ""
        yield [*first, metric, *cells, *times, verdicts]


def cost(records, who):
    """Wall seconds, and how many cores were busy: less than were there if the machine was shared."""
    seconds, cpu = (fmean(one[who][key] for one in records) for key in ("seconds", "cpu"))
    return f"{seconds:.0f} s ({cpu / seconds:.1f})"


def short(verdict):
    """VERDICT better +4.0 nDCG@10 [1.6, 6.5] level=... -> better +4.0."""
    words = verdict.removeprefix("VERDICT ").split()
    at = next((place for place, word in enumerate(words) if word[0] in "+-" and word[1:2].isdigit()), len(words))
    return " ".join(words[: at + 1])


def table(records, arguments):
    """The table in Markdown."""
    half = arguments.half
    head = ["set", "kind", "base knew it", "metric", "base", "script", "fit", "fit - script (95%)"]
    head += [*["fit in half the script's time"] * half, "script: wall (cores)", "fit: wall (cores)"]
    head += [*["half: wall (cores)"] * half, "verdicts of fit"]
    lines = [line for name, some in records.items() if some for line in lines_of(name, some, arguments)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def minutes_left(records, arguments):
    """As long as the sets so far took, with a tenth for scoring."""
    done = [sum(one.get("seconds", 0) for one in record.values()) for some in records.values() for record in some]
    return 1.1 * fmean(done) * (arguments.seeds * len(records) - len(done)) / 60


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/against-script"))
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--sets", default=DEFAULT, help=f"some of {', '.join(SETS)}; by default {DEFAULT}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half", action="store_true", help="also run fit with half of the script's wall time")
    parser.add_argument("--rows", type=int, help="for a trial: train on this many rows of each set, test on half")
    parser.add_argument("--cores", type=int, default=CORES, help="that each contender runs on")
    arguments = parser.parse_args(given)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])  # processes inherit it
    arguments.output = arguments.output.absolute()
    arguments.output.mkdir(parents=True, exist_ok=True)
    names = arguments.sets.split(",")
    records = {name: [] for name in names}
    for seed in range(1, arguments.seeds + 1):
        for number, name in enumerate(names):
            records[name].append(one_set(name, seed, number, arguments))
            print(f"{name}, seed {seed}: done; about {minutes_left(records, arguments):.0f} minutes left", flush=True)
            (arguments.output / f"table-{arguments.budget}.md").write_text(table(records, arguments) + "\n", "utf-8")
    print(table(records, arguments))


if __name__ == "__main__":
    main()
