"""Whether warmup-stable-decay is as good as a linear schedule at equal steps: fits use it to continue shorter runs.

    python benchmarks/schedules.py [--data ../shared/data] [--out DIR] [--steps 40 120] [--seeds 1 2] [--batch 32]

1,500 pairs of OpenTriviaQA and 2,000 of MedQuAD, 500 more of each for testing; the embedded encoder learns from them as
the route `pairs` of a fit does. Printed: nDCG@10 of the test questions among all answers, and the paired difference to
the linear schedule over questions with its 95% interval. Called again, it resumes.
"""

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare, start_accelerator
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score

SETS = {"OpenTriviaQA": 1500, "MedQuAD": 2000}
TESTED = 500
SCHEDULES = {
    "linear": {"schedule": "linear", "warmup": 0.1},
    "decay 0.1": {"schedule": "warmup-stable-decay", "warmup_steps": 5, "decay": 0.1},
    "decay 0.25": {"schedule": "warmup-stable-decay", "warmup_steps": 5, "decay": 0.25},
}


def read_pairs(path, subset):
    """The pairs of a subset, shuffled, each question and each answer once."""
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row[-1] == subset]
    rows = [rows[at] for at in np.random.default_rng(0).permutation(len(rows))]
    by_question = {row[0]: row[1] for row in rows}
    by_answer = {answer: question for question, answer in by_question.items()}
    return [(question, answer) for answer, question in by_answer.items()]


def gains(model, pairs):
    """The nDCG@10 of each question among all answers."""
    encoder = Encoder.load(str(model))
    questions, answers = (encoder.encode(list(side)) for side in zip(*pairs, strict=True))
    found = questions @ answers.T
    ranks = (found > np.diag(found)[:, None]).sum(axis=1)
    return Score("mean", np.where(ranks < 10, 1 / np.log2(ranks + 2), 0.0)[:, None])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data")
    parser.add_argument("--out", type=Path, default=Path("schedules"))
    parser.add_argument("--steps", type=int, nargs="+", default=[40, 120])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=32)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    accelerator = start_accelerator((), given.out)
    for name, rows in SETS.items():
        pairs = read_pairs(given.data / "qa/qa_pairs.en.tsv.gz", name)[: rows + TESTED]
        path = given.out / f"{name}.tsv"
        path.write_text("\n".join(["anchor\tpositive", *map("\t".join, pairs[:rows])]) + "\n", "utf-8")
        base = gains("embedded", pairs[rows:])
        print(f"{name}: the base {base.value:.2f}", flush=True)
        for steps in given.steps:
            for seed in given.seeds:
                linear = None
                for label, schedule in SCHEDULES.items():
                    learn = stage(
                        *("contrastive",), name="learn", data=str(path), steps=steps, learning_rate=5e-5,
                        max_length=64, log_every=1000, batch=given.batch, **schedule,
                    )  # fmt: skip
                    plan = Plan(label, "embedded", (learn,), seeds=(seed,))
                    (runner,) = prepare([plan], given.out, accelerator, lambda line: None)
                    (result,) = runner.run()
                    scores = gains(result.model, pairs[rows:])
                    linear = linear or scores
                    found = compare_averages([scores], [linear])
                    beside = f"{found.difference:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
                    print(f"  {steps} steps, seed {seed}, {label}: {scores.value:.2f}  {beside}", flush=True)


if __name__ == "__main__":
    main()
