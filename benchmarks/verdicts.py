"""How often `fit` says "better" where there is nothing to learn, and where there is: 20 fits each.

    pip install --no-deps home-assistant-intents==2026.10.27
    python -m benchmarks.verdicts DATA [-o out/verdicts] [--fits 20] [--budget 30steps]

The fits take turns over five sets of four kinds (`real_sets`): pairs, labelled texts, scored pairs and triplets. Each
gets a sample of its own, a seed of its own and a cache of its own, so that it is the first use of its test rows. In
shuffled data the partners, the labels or the scores are permuted over all rows before `fit` sees them, so that whatever
it holds out has nothing to do with what it learns from; "better" is then always wrong. A finished fit is kept in OUT,
so that a run that was killed resumes; OUT/table.md has the table. About 40 minutes of one quiet core.
"""

import argparse
import json
import os
import shutil
import time
from pathlib import Path

import numpy as np

from benchmarks.real_sets import SETS, Table
from sentloom import SentloomError, fit

NAMES = ("selqa", "intents", "stsb-de", "trivia", "nli-de")
ROWS = 800
VERDICTS = ("better", "no difference shown", "worse", "refused")


def shuffled(table, seed):
    """The same rows with the last column permuted; of triplets, with both sides swapped in half of the rows."""
    draw, columns = np.random.default_rng(seed), dict(table.columns)
    if table.kind == "triplets":
        swap = draw.permutation(len(table)) < len(table) / 2
        sides = zip(table["positive"], table["negative"], swap, strict=True)
        columns["positive"], columns["negative"] = zip(*((b, a) if s else (a, b) for a, b, s in sides), strict=True)
    else:
        *_, name = columns
        columns[name] = [columns[name][row] for row in draw.permutation(len(table))]
    return Table(table.kind, columns, table.clusters)


def one_fit(name, learnable, seed, arguments):
    """What a fit says, and by how much."""
    folder = arguments.output / f"{name}-{'learnable' if learnable else 'shuffled'}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["SENTLOOM_CACHE"] = str(folder / "cache")
    train, _ = SETS[name].split(arguments.data, arguments.rows, 1, seed)
    (train if learnable else shuffled(train, seed)).write(folder / "train.csv")
    start = time.perf_counter()
    try:
        done = fit(folder / "train.csv", folder / "model", budget=arguments.budget, seed=seed)
    except SentloomError as error:
        found = {"verdict": "refused", "line": str(error)}
    else:
        found = {"verdict": done.verdict, "line": done.result.verdict_line}
    shutil.rmtree(folder)
    return {**found, "seconds": time.perf_counter() - start, "rows": len(train), "kind": train.kind}


def runs(count):
    """Sets, kinds of data and seeds, in turn: one on shuffled data, then one on learnable data."""
    return [(NAMES[at % len(NAMES)], learnable, at + 1) for at in range(count) for learnable in (False, True)]


def table(records):
    """How often each verdict was given, by set and in total."""
    head = ["data", "set", "kind", "fits", *VERDICTS]
    lines = []
    for learnable in (False, True):
        what = "learnable" if learnable else "shuffled"
        groups = {
            name: [one for (own, how, _), one in records.items() if (own, how) == (name, learnable)] for name in NAMES
        }
        lines += [line(what, name, some) for name, some in groups.items() if some]
        lines.append(line(what, "all", [one for some in groups.values() for one in some]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *lines])


def line(what, name, some):
    counts = [sum(one["verdict"] == verdict for one in some) for verdict in VERDICTS]
    return [what, name, some[0]["kind"] if name != "all" else "", str(len(some)), *map(str, counts)]


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/verdicts"))
    parser.add_argument("--fits", type=int, default=20, help="on shuffled data, and as many on learnable data")
    parser.add_argument("--budget", default="30steps")
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args(given)
    arguments.output = arguments.output.absolute()
    arguments.output.mkdir(parents=True, exist_ok=True)
    wanted, records = runs(arguments.fits), {}
    for run in wanted:
        name, learnable, seed = run
        path = arguments.output / f"{name}-{'learnable' if learnable else 'shuffled'}-{seed}.json"
        if not path.exists():
            path.write_text(json.dumps(one_fit(*run, arguments)), "utf-8")
        records[run] = json.loads(path.read_text("utf-8"))
        left = np.mean([one["seconds"] for one in records.values()]) * (len(wanted) - len(records)) / 60
        print(f"{path.stem}: {records[run]['line']}; about {left:.0f} minutes left", flush=True)
    (arguments.output / "table.md").write_text(table(records) + "\n", "utf-8")
    print(table(records))


if __name__ == "__main__":
    main()
