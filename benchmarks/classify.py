"""Classifiers from few and from many labelled rows: sentloom, SetFit, and a linear probe on the base.

    pip install "sentloom[bench]" && pip install --no-deps home-assistant-intents==2026.10.27
    python -m benchmarks.classify DATA [-o out/classify] [--sets intents,subj,sst2,sources] [--sizes 8,16,full]
                                       [--seeds 1] [--base embedded] [--arms probe,sentloom,setfit]

Every arm runs in a process of its own, the arms of a set and a size one after the other; a line of results.jsonl is
one of them, and what is there is not run again. Time is that of training and predicting, without imports: CPU seconds,
since other work may share the machine, and wall seconds beside them. SetFit has its defaults, but 20 pairs of either
kind for a row (the paper's setting) instead of all of them, and one pair for a row of a full set, which would take an
hour otherwise. The probe is scikit-learn's logistic regression with the C that cross-validation chooses.

At the end, texts of labels that no arm has seen (a fifth of the labels of `intents`): how many sentloom leaves to
people, and how many of the others.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.real_sets import divide, intents, rows_of

SIZES = ("8", "16", "full")
FULL = 2_000  # training rows
TESTED = 1_000


# ---------------------------------------------------------------- sets


def of_intents(data):
    """Training and test rows of Home Assistant's commands, without a template in common, of labels with 16 or more."""
    train, test = divide(intents(data), 100_000, 900)
    counts = defaultdict(int)
    for label in train["label"]:
        counts[label] += 1
    parts = [list(zip(part["text"], part["label"], strict=True)) for part in (train, test)]
    return [[row for row in part if counts[row[1]] >= 16] for part in parts]


def of_file(file, label):
    """Rows of a file of DATA, in a random order."""

    def read(data):
        rows = [(row["text"], row[label]) for row in rows_of(data / file)]
        random.Random(0).shuffle(rows)
        return rows[TESTED:], rows[:TESTED]

    return read


SETS = {
    "intents": of_intents,
    "subj": of_file("senteval/SUBJ.tsv", "label"),
    "sst2": of_file("senteval/SST2.train.tsv", "label"),
    "sources": of_file("text/sentences.en.tsv.gz", "source"),
}


def drawn(train, size, seed):
    """So many rows of each label, or all of them up to `FULL`."""
    rows = list(train)
    random.Random(seed).shuffle(rows)
    if size == "full":
        return rows[:FULL]
    by_label = defaultdict(list)
    for row in rows:
        by_label[row[1]].append(row)
    return [row for own in by_label.values() for row in own[: int(size)]]


# ---------------------------------------------------------------- arms


def probe(base, train, asked, seed, folder):
    from sklearn.linear_model import LogisticRegressionCV

    from sentloom import Encoder

    encoder = Encoder.load(base)
    began = clocks()
    vectors, labels = encoder.encode([text for text, _ in train]), [label for _, label in train]
    model = LogisticRegressionCV(Cs=[1, 10, 100], cv=4, max_iter=300, use_legacy_attributes=False)
    answers = model.fit(vectors, labels).predict(encoder.encode(asked))
    return list(answers), [False] * len(asked), began


def sentloom(base, train, asked, seed, folder):
    import shutil

    from sentloom import fit

    shutil.rmtree(folder, ignore_errors=True)  # nothing is resumed where time is measured
    began = clocks()
    rows = list(train)
    done = fit(rows, folder / "model", shape="classification", base=base, budget="100steps", seed=seed)
    said = done.predict(asked)
    return [own.label for own in said], [own.abstain for own in said], began


def setfit(base, train, asked, seed, folder):
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from sentloom import Encoder

    labels = sorted({label for _, label in train})
    (folder / "base").parent.mkdir(parents=True, exist_ok=True)
    Encoder.load(base).save(folder / "base")
    model = SetFitModel.from_pretrained(str(folder / "base"), labels=labels)
    rows = Dataset.from_dict({"text": [text for text, _ in train], "label": [labels.index(own) for _, own in train]})
    began = clocks()
    full = len(train) > 16 * len(labels)
    arguments = TrainingArguments(
        output_dir=str(folder / "out"), num_iterations=1 if full else 20, num_epochs=1, seed=seed, report_to="none",
        save_strategy="no", show_progress_bar=False,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=rows).train()
    return [str(own) for own in model.predict(asked)], [False] * len(asked), began


ARMS = {arm.__name__: arm for arm in (probe, sentloom, setfit)}


def clocks():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def run_arm(job):
    """One arm, in this process; prints one line of JSON."""
    train, test = SETS[job["set"]](Path(job["data"]))
    held_out = unseen(train) if job["size"] == "unseen" else set()
    rows = drawn([row for row in train if row[1] not in held_out], "16" if held_out else job["size"], job["seed"])
    answers, left, (wall, cpu) = ARMS[job["arm"]](
        job["base"], rows, [text for text, _ in test], job["seed"], Path(job["folder"])
    )
    now = clocks()
    right = [int(answer == label) for answer, (_, label) in zip(answers, test, strict=True)]
    known = [int(label not in held_out) for _, label in test]
    spent = {"wall": round(now[0] - wall, 1), "cpu": round(now[1] - cpu, 1)}
    left = list(map(int, left))
    print("RESULT " + json.dumps({"rows": len(rows), "right": right, "left": left, "known": known, **spent}))


def unseen(train):
    """A fifth of the labels."""
    return set(sorted({label for _, label in train})[::5])


# ---------------------------------------------------------------- the bench


def key_of(job):
    return tuple(str(job[name]) for name in ("set", "size", "seed", "base", "arm"))


def run_all(options, results):
    known = {key_of(line) for line in read(results)}
    jobs = [
        {"set": name, "size": size, "seed": seed, "base": options.base, "arm": arm}
        for seed in range(1, options.seeds + 1)
        for size in options.sizes.split(",")
        for name in options.sets.split(",")
        for arm in options.arms.split(",")
    ]
    jobs += [{"set": "intents", "size": "unseen", "seed": 1, "base": options.base, "arm": "sentloom"}]
    for job in jobs:
        if key_of(job) in known:
            continue
        folder = options.output / "-".join(key_of(job)).replace("/", "_")
        asked = {**job, "data": str(options.data), "folder": str(folder)}
        command = [sys.executable, "-m", "benchmarks.classify", "--run", json.dumps(asked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if not lines:
            print(f"{key_of(job)} failed:\n{done.stderr[-2000:]}")
            continue
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**job, **json.loads(lines[0].removeprefix("RESULT "))}) + "\n")
        print(line_of(read(results)[-1]), flush=True)


def read(results):
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()] if results.exists() else []


def line_of(line):
    right, left, known = (np.array(line[name]) for name in ("right", "left", "known"))
    name = f"{line['base']}, {line['set']}, {line['size']} (seed {line['seed']}, {line['rows']} rows), {line['arm']}"
    if line["size"] == "unseen":
        fresh, usual = (left[known == own].mean() for own in (0, 1))
        return f"{name}: {fresh:.0%} of {(known == 0).sum()} texts of unseen labels are left, {usual:.0%} of the others"
    half = 196 * right.std() / len(right) ** 0.5
    return f"{name}: {100 * right.mean():.1f} ± {half:.1f}, {line['cpu']:.0f} s of CPU, {line['wall']:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/classify"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--base", default="embedded")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_arm(json.loads(options.run))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    run_all(options, options.output / "results.jsonl")
    print("\n".join(map(line_of, read(options.output / "results.jsonl"))))


if __name__ == "__main__":
    main()
