"""The linear probe's grid against scikit-learn's LogisticRegression, interleaved, on the same folds and objective.

    python benchmarks/probes.py [--rounds 3]

Ten folds of MR (10,662 sentences, the embedded encoder, 384 numbers each) at four weight decays: 40 models a round on
each side. The peer runs lbfgs as it comes, one model after another, stopping at its own tolerance or after its 100
steps; ours continues to the optimum. Where MR's file is absent, the data are synthetic with the same shape. Printed:
the median ratio of times, the accuracy of both, and the number of the peer's models that had not converged.
"""

import argparse
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from sentloom import Encoder
from sentloom.data.readers import read
from sentloom.evaluation.probes import logistic
from sentloom.evaluation.probes.protocols import PENALTIES, Probe, cross_validated

MR = Path(__file__).parents[2] / "shared/data/senteval/MR.tsv"


def vectors():
    """MR through the embedded encoder, or two clouds of unit vectors."""
    if MR.is_file():
        data = read(MR)
        features = Encoder.load("embedded").encode(data.column("text").to_pylist())
        return "MR", np.asarray(features, np.float32), np.array(data.column("label").to_pylist(), np.int64)
    random = np.random.default_rng(0)
    labels = np.arange(10_662) % 2
    features = random.normal(size=(len(labels), 384)) * np.linspace(3, 0.3, 384) + 0.1 * labels[:, None]
    return "synthetic", (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float32), labels


def ours(features, labels, folds):
    """The accuracy (penalties, folds) on held-out rows."""
    matrix = torch.from_numpy(features)
    training = torch.ones(len(labels), len(folds), dtype=torch.bool)
    for number, (_, held) in enumerate(folds):
        training[held, number] = False
    weights = logistic.fit(matrix, torch.eye(2)[torch.from_numpy(labels)], training, PENALTIES)
    answers = [logistic.logits(matrix, each).argmax(dim=2).numpy() for each in weights]
    return [[np.mean(each[held, at] == labels[held]) for at, (_, held) in enumerate(folds)] for each in answers]


def theirs(features, labels, folds):
    """The same, and how many models stopped at the last step allowed."""
    features = np.concatenate([features, np.ones((len(features), 1), np.float32)], axis=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        right = [
            [
                LogisticRegression(C=2 / (len(train) * l2), fit_intercept=False)
                .fit(features[train], labels[train])
                .score(features[held], labels[held])
                for train, held in folds
            ]
            for l2 in PENALTIES
        ]
    return right, sum(issubclass(each.category, ConvergenceWarning) for each in caught)


def timed(function, *given):
    start = time.perf_counter()
    result = function(*given)
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    origin, features, labels = vectors()
    folds = list(StratifiedKFold(10, shuffle=True, random_state=1111).split(features, labels))
    times = []
    for _ in range(given.rounds):
        mine, accuracy = timed(ours, features, labels, folds)
        other, (peer, unfinished) = timed(theirs, features, labels, folds)
        times.append((mine, other))
    ratios = sorted(other / mine for mine, other in times)
    print(f"{origin}, {features.shape}, 10 folds x 4 weight decays, {torch.get_num_threads()} threads")
    print("seconds " + ", ".join(f"{other:.1f} against {mine:.2f}" for mine, other in times))
    print(f"median ratio {statistics.median(ratios):.1f}x (from {ratios[0]:.1f} to {ratios[-1]:.1f})")
    for l2, own, foreign in zip(PENALTIES, accuracy, peer, strict=True):
        print(f"l2 {l2:g}: accuracy {100 * np.mean(own):.3f}, scikit-learn {100 * np.mean(foreign):.3f}")
    print(f"{unfinished} of the peer's 40 models had not converged")
    for preset in ("fast", "paper"):
        seconds, items = timed(cross_validated, features, labels, Probe(preset))
        print(f"nested, {preset}: {seconds:.1f} s, accuracy {100 * np.mean(items[:, 0] == items[:, 1]):.2f}")


if __name__ == "__main__":
    main()
