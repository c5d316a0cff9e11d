"""A cross-lingual step whose source vectors lie on disk against one that runs the source encoder, interleaved.

    python benchmarks/source_cache.py [--steps 12] [--batch 64]

The embedded encoder is source and student, with a queue of 8,192; a step is all from the texts to the moved weights.
Printed: the median ratio of times, and what making the vectors took a row, which is paid once for all epochs, seeds and
variants of a run.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from sentloom import Encoder, read
from sentloom.data.batches import Batches
from sentloom.data.corpus.opening import open_data
from sentloom.methods.cross_lingual import CrossLingual, CrossLingualOptions
from sentloom.training import Settings
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer

TRANSLATIONS = Path(__file__).parents[2] / "shared/data/parallel/multi30k.en-de.train.tsv.gz"
SETTINGS = Settings(steps=1, learning_rate=2e-4)


def real_pairs(number):
    """English with German translations, or names and summaries of docstrings where that data is absent."""
    found = TRANSLATIONS.is_file()
    data = read(TRANSLATIONS) if found else open_data("embedded/pairs:numpy,pandas,torch")
    keep = np.zeros(len(data), bool)
    keep[np.random.default_rng(0).permutation(len(data))[:number]] = True
    return "Multi30k en-de" if found else "docstrings", data.select(keep)


class Steps:
    """One way to train, a step at a time."""

    def __init__(self):
        torch.manual_seed(0)
        self.method = CrossLingual(Encoder.load("embedded", max_length=64), CrossLingualOptions()).train()
        self.accelerator, self.optimizer = Accelerator(cpu=True), build_optimizer(self.method, SETTINGS)

    def seconds(self, batches, number):
        """What a step takes."""
        start = time.perf_counter()
        self.optimizer.zero_grad()
        add_gradients(self.method, batches.batch(number), self.accelerator)
        self.optimizer.step()
        self.method.after_step()
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    origin, data = real_pairs((given.steps + 1) * given.batch)
    without, with_cache = Steps(), Steps()
    batches = Batches(data, given.batch, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with_cache.method.prepare(data, Path(folder))
        once = time.perf_counter() - start
        times = [(without.seconds(batches, at), with_cache.seconds(batches, at)) for at in range(given.steps + 1)][1:]
    ratios = sorted(slow / quick for slow, quick in times)
    slow, quick = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{origin}, batch {given.batch}, {len(times)} steps, {torch.get_num_threads()} threads")
    print(f"source encoder in every step {slow:.3f} s, source vectors from the disk {quick:.3f} s")
    print(f"median ratio {statistics.median(ratios):.2f}x (from {ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"making the vectors: {1000 * once / len(data):.1f} ms a row, once")


if __name__ == "__main__":
    main()
