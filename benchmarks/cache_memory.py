"""Memory of a training step: large batches through the gradient cache against batch 32 at once.

    python benchmarks/cache_memory.py

Each runs some steps on the embedded encoder in a process of its own: SimCSE on docstring sentences, and the contrastive
method on names and summaries with Sentence-T5's batch of 2,048, which must stay within 3 GB. Printed is the peak of
resident memory, of the whole process and above what it holds before the first step (weights, libraries).
"""

import json
import resource
import subprocess
import sys

CASES = {
    "simcse, batch 32": ("simcse", 32, None),
    "simcse, batch 1,024 in chunks of 32": ("simcse", 1024, 32),
    "contrastive, batch 2,048 in chunks of 32": ("contrastive", 2048, 32),
}
STEPS = {32: 20, 1024: 2, 2048: 2}
LIMIT = 3 * 1024  # MB, of the last case


def peak():
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name, batch, chunk):
    import torch
    from accelerate import Accelerator

    from sentloom import Encoder
    from sentloom.data.batches import Batches
    from sentloom.data.corpus.docstrings import harvest
    from sentloom.methods import METHODS
    from sentloom.training import Settings
    from sentloom.training.gradients import add_gradients
    from sentloom.training.optimizers import build_optimizer

    corpus = harvest(["numpy", "torch"], held_out=[])
    data = corpus.texts("train") if name == "simcse" else corpus.pairs("train")
    torch.manual_seed(1)
    method = METHODS[name](Encoder.load("embedded", max_length=64), METHODS[name].Options()).train()
    optimizer = build_optimizer(method, Settings(steps=1))
    before = peak()
    batches = Batches(data, batch, seed=1)
    for step in range(STEPS[batch]):
        optimizer.zero_grad()
        add_gradients(method, batches.batch(step), Accelerator(cpu=True), chunk)
        optimizer.step()
    return {"before": before, "peak": peak()}


def main():
    found = {}
    for title, (name, batch, chunk) in CASES.items():
        command = [sys.executable, __file__, name, str(batch), str(chunk or 0)]
        found[title] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        own = found[title]["peak"] - found[title]["before"]
        print(f"{title}: peak {found[title]['peak']:.0f} MB, {own:.0f} MB above what was held before")
    small, large, largest = found.values()
    print(f"1,024 against 32: ratio {large['peak'] / small['peak']:.2f} of the whole", end=", ")
    print(f"{(large['peak'] - large['before']) / (small['peak'] - small['before']):.2f} of the rest")
    print(f"2,048: {'within' if largest['peak'] < LIMIT else 'BEYOND'} 3 GB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None)))
    else:
        main()
