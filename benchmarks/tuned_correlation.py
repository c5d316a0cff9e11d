"""How far a tuned model wins and loses on the same clusters as its base: the correlation that `smallest_gain` assumes.

    python benchmarks/tuned_correlation.py DATA [-o out/tuned-correlation]

DATA is a data folder with qa/qa_pairs.en.tsv.gz. On three of its sources the embedded encoder is trained for a few
steps on two thirds of the answers. Questions about the other third look for their answer among all answers of the
source; those that share an answer are one cluster. Printed for nDCG@10 and recall@1: the score before and after, the
correlation over clusters, and the standard error of the gain against the one that the base alone foretells. What is
measured stays in OUT, so that a killed run resumes. Planned for 30 minutes of one core.
"""

import argparse
import csv
import gzip
import json
from pathlib import Path

import numpy as np

from sentloom import Encoder
from sentloom.evaluation.jackknife import influences
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.task import Score
from sentloom.lab import train

SOURCES = {"SelQA": 2000, "QNLI.dev": 2000, "MedQuAD": 2000}  # rows taken
TRAININGS = {"30 steps at 2e-5": (30, 2e-5), "100 steps at 2e-5": (100, 2e-5), "40 steps at 1e-4": (40, 1e-4)}
RECIPE = "base: embedded\nstages: [{name: learn, method: contrastive, data: none.tsv, batch: 32, max_length: 96}]\n"


def rows_of(file, source):
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["question"], row["answer"]) for row in rows if row["subset"] == source][: SOURCES[source]]


def split(rows):
    """Two thirds of the answers to train on, one third to test on."""
    answers = list(dict.fromkeys(answer for _, answer in rows))
    order = np.random.default_rng(0).permutation(len(answers))
    held = {answers[place] for place in order[: len(answers) // 3]}
    return [row for row in rows if row[1] not in held], [row for row in rows if row[1] in held], answers


def scores_of(encoder, test, answers):
    """Each question's nDCG@10 and recall@1 among all answers, with its answer as its cluster."""
    number = {answer: place for place, answer in enumerate(answers)}
    right = [number[answer] for _, answer in test]
    vectors = encoder.encode([question for question, _ in test]), encoder.encode(answers)
    ranks = np.array([found[0] for found in ranks_of(*vectors, [{one} for one in right])])
    gains = {"nDCG@10": np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0.0), "recall@1": (ranks == 1).astype(float)}
    return {name: Score("mean", gain[:, None], clusters=np.array(right)) for name, gain in gains.items()}


def compared(base, tuned):
    """The correlation over clusters, and the standard error of the gain: measured, and from the base alone."""
    before, after = (100 * influences([score]).values[0] for score in (base, tuned))
    return {
        "before": base.value,
        "after": tuned.value,
        "correlation": float((before @ after) / np.sqrt((before @ before) * (after @ after))),
        "error": float(np.linalg.norm(after - before)),
        "base error": float(np.linalg.norm(before)),
        "clusters": len(np.unique(base.clusters)),
    }


def measured(file, source, out):
    """Yield a line for each training and metric, kept in a file of its own."""
    train_rows, test, answers = split(rows_of(file, source))
    recipe = out / "recipe.yaml"
    recipe.write_text(RECIPE, encoding="utf-8")
    base = None
    for name, (steps, rate) in TRAININGS.items():
        kept = out / f"{source} {name}.json"
        if not kept.exists():
            base = base or scores_of(Encoder.load("embedded"), test, answers)
            data = [{"anchor": question, "positive": answer} for question, answer in train_rows]
            settings = {"learn.data": data, "learn.steps": steps, "learn.learning_rate": rate}
            trained = train(recipe, out / source / name.replace(" ", "-"), set=settings)
            tuned = scores_of(trained.encoder, test, answers)
            found = {metric: compared(base[metric], tuned[metric]) for metric in base}
            kept.write_text(json.dumps(found), encoding="utf-8")
        for metric, one in json.loads(kept.read_text(encoding="utf-8")).items():
            yield name, metric, one


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/tuned-correlation"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print("| source | training | metric | clusters | before | after | correlation | error of gain | error of base |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for source in SOURCES:
        for name, metric, one in measured(given.data / "qa/qa_pairs.en.tsv.gz", source, given.out):
            figures = [one["before"], one["after"], one["correlation"], one["error"], one["base error"]]
            text = " | ".join(f"{figure:.2f}" for figure in figures)
            print(f"| {source} | {name} | {metric} | {one['clusters']:,} | {text} |", flush=True)


if __name__ == "__main__":
    main()
