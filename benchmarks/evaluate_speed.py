"""The suites `sts` and `transfer` against a plain script that does the same work.

    python benchmarks/evaluate_speed.py [DATA] [--sets STS-B,MR] [--cpu] [--precision bf16]

The plain script encodes with sentence-transformers (batch 32) and solves SentEval's protocol with scikit-learn's
LogisticRegression: the same folds, the same grid of four L2 values, its default solver. Both take every set that is in
the data folder: the plain script one after the other, ours all together, as `sentloom evaluate` does, so that a
sentence of several sets is encoded once. Nothing is kept from before. About twenty minutes.

Both times are split into encoding and the rest, and encoding is compared with the time that its matrix products alone
take at the speed of a large one. `--cpu` takes the CPU time of one thread instead of the clock, for a busy machine.
`--precision bf16` lets ours encode in bfloat16, which changes scores a little.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from sentloom import Encoder
from sentloom.errors import MissingPart
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import SUITES

DATA = Path(__file__).parents[2] / "shared/data"
NAMES = [*SUITES["sts"].sets, *SUITES["transfer"].sets]
GRID = (1e-5, 1e-4, 1e-3, 1e-2)
FOLDS, SEED = 10, 1111


class Stopwatch:
    """A function whose calls are timed together."""

    def __init__(self, call, clock):
        self.call, self.clock, self.seconds = call, clock, 0.0

    def __call__(self, *arguments, **options):
        start = self.clock()
        try:
            return self.call(*arguments, **options)
        finally:
            self.seconds += self.clock() - start


def peak(clock, size=1024, seconds=2.0):
    """Multiplications and additions per second of a large matrix product in float32."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    a @ b
    start, count = clock(), 0
    while clock() - start < seconds:
        a @ b
        count += 1
    return 2 * size**3 * count / (clock() - start)


def operations(encoder, tasks):
    """Multiplications and additions of the matrix products that encode every distinct sentence once."""
    config = encoder.backbone.model.config
    d, wide, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    lengths = np.array([len(one) for one in encoder.tokenize(distinct_texts(tasks))], np.float64)
    per_token = 2 * layers * (4 * d * d + 2 * d * wide)
    return float((per_token * lengths + 4 * layers * d * lengths**2).sum())


def distinct_texts(tasks):
    return list(dict.fromkeys(text for task in tasks for some in task.texts.values() for text in some))


def solve(features, labels, l2):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after its 100 steps
    # SentEval's objective: the mean loss of a softmax of two outputs, all weights decayed
    return LogisticRegression(C=2 / (len(labels) * l2), fit_intercept=False).fit(features, labels)


def folds(features, labels):
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(features, labels)


def best_l2(features, labels):
    scores = np.zeros(len(GRID))
    for train, test in folds(features, labels):
        scores += [solve(features[train], labels[train], l2).score(features[test], labels[test]) for l2 in GRID]
    return GRID[int(np.argmax(scores))]


def plain(model, name, rows):
    """A set's score: rows are its parts, each with texts, or two sentences, and gold."""
    from scipy.stats import spearmanr

    if "score" in rows[0]:
        left, right = (model.encode(rows[0][side], batch_size=32) for side in ("sentence1", "sentence2"))
        return 100 * spearmanr((left * right).sum(1), rows[0]["score"]).statistic
    features, labels = zip(*[(with_ones(encoded(model, part)), np.array(part["label"])) for part in rows], strict=True)
    if len(rows) == 1:
        right = 0
        for train, test in folds(features[0], labels[0]):
            x, y = features[0][train], labels[0][train]
            right += solve(x, y, best_l2(x, y)).score(features[0][test], labels[0][test]) * len(test)
        return 100 * right / len(labels[0])
    if len(rows) == 3:
        tried = [solve(features[0], labels[0], l2) for l2 in GRID]
        return 100 * max(tried, key=lambda one: one.score(features[1], labels[1])).score(features[2], labels[2])
    return 100 * solve(features[0], labels[0], best_l2(features[0], labels[0])).score(features[1], labels[1])


def encoded(model, part):
    if "text" in part:
        return model.encode(part["text"], batch_size=32)
    u, v = (model.encode(part[side], batch_size=32) for side in ("sentence1", "sentence2"))
    return np.hstack([np.abs(u - v), u * v])


def with_ones(features):
    return np.hstack([features, np.ones((len(features), 1), np.float32)])


def read_tsv(path):
    head, *lines = path.read_text("utf-8").splitlines()
    columns = dict(zip(head.split("\t"), zip(*(line.split("\t") for line in lines), strict=True), strict=True))
    return {
        name: [float(cell) for cell in cells] if name == "score" else list(cells) for name, cells in columns.items()
    }


def parts_of(folder, name):
    files = {
        **{f"STS{year}": [f"sts/STS{year}"] for year in range(12, 17)},
        "STS-B": ["sts/STSB.test"],
        "SICK-R": ["sts/SICKR.test"],
        **{name: [f"senteval/{name}"] for name in ("MR", "CR", "SUBJ", "MPQA")},
        "SST-2": ["senteval/SST2.train", "senteval/SST2.dev", "senteval/SST2.test"],
        **{name: [f"senteval/{name}.train", f"senteval/{name}.test"] for name in ("TREC", "MRPC")},
    }
    return [read_tsv(folder / f"{file}.tsv") for file in files[name]]


def main():
    from sentence_transformers import SentenceTransformer

    from sentloom.encoder.locate import locate

    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=NAMES)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--precision", default="fp32")
    given = parser.parse_args()
    clock = time.process_time if given.cpu else time.perf_counter
    if given.cpu:
        torch.set_num_threads(1)
    encoder = Encoder.load("embedded", precision=given.precision)
    model = SentenceTransformer(str(locate("embedded", None)), device="cpu")
    encoder.encode, model.encode = Stopwatch(encoder.encode, clock), Stopwatch(model.encode, clock)
    tasks = []
    start = clock()
    for name in given.sets:
        try:
            tasks.append(SUITES["sts" if name in SUITES["sts"].sets else "transfer"].load(name, SetSource(given.data)))
        except MissingPart:
            print(f"{name}: missing")
    scores = score_tasks(encoder, tasks)
    ours, theirs = clock() - start, 0.0
    print(f"ours: {ours:.1f} s, {encoder.encode.seconds:.1f} of them encoding", flush=True)
    needed, fastest = operations(encoder, tasks), peak(clock)
    print(
        f"the matrix products of encoding, {needed / 1e12:.2f} Tflop, take {needed / fastest:.1f} s at the"
        f" {fastest / 1e9:.0f} Gflop/s of a large one in float32",
        flush=True,
    )
    for task, found in zip(tasks, scores, strict=True):
        start = clock()
        score = plain(model, task.name, parts_of(given.data, task.name))
        theirs += (took := clock() - start)
        print(f"{task.name}: plain {took:.1f} s ({score:.2f}), ours ({found[task.main].value:.2f})", flush=True)
    print(f"plain: {theirs:.1f} s, {model.encode.seconds:.1f} of them encoding")
    print(f"all: ours {ours:.0f} s, plain {theirs:.0f} s, {theirs / ours:.2f}x")


if __name__ == "__main__":
    main()
