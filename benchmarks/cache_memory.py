"""Memory of a training step: batch 1,024 through the gradient cache against batch 32 at once.

    python benchmarks/cache_memory.py

Each runs some steps of SimCSE on the embedded encoder and docstring sentences, in a process of its own; printed is the
peak of resident memory, of the whole process and above what it holds before the first step (weights, libraries).
"""

import json
import resource
import subprocess
import sys

CASES = {"batch 32": (32, None), "batch 1,024 in chunks of 32": (1024, 32)}
STEPS = {32: 20, 1024: 2}


def peak():
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(batch, chunk):
    import torch
    from accelerate import Accelerator

    from sentloom import Encoder
    from sentloom.data.batches import Batches
    from sentloom.data.docstrings import harvest
    from sentloom.methods import METHODS
    from sentloom.training import Settings
    from sentloom.training.gradients import add_gradients
    from sentloom.training.optimizers import build_optimizer

    data = harvest(["numpy"], held_out=[]).texts("train")
    simcse = METHODS["simcse"]
    torch.manual_seed(1)
    method = simcse(Encoder.load("embedded", max_length=64), simcse.Options()).train()
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
    for name, (batch, chunk) in CASES.items():
        command = [sys.executable, __file__, str(batch), str(chunk or 0)]
        found[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        own = found[name]["peak"] - found[name]["before"]
        print(f"{name}: peak {found[name]['peak']:.0f} MB, {own:.0f} MB above what was held before")
    small, large = found.values()
    print(f"ratio {large['peak'] / small['peak']:.2f} of the whole", end=", ")
    print(f"{(large['peak'] - large['before']) / (small['peak'] - small['before']):.2f} of the rest")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]) or None)))
    else:
        main()
