"""Memory and time of texts of 512, 2,048 and 8,192 tokens: encoded, and in a training step.

    python benchmarks/long_texts.py smollm2 [--layers 5] [--results long_texts.jsonl]

The model keeps `--layers` of its layers: memory and time grow in proportion to these. A step is the forward and
backward pass of one text through all weights but the embeddings, plain or with activation checkpointing; `eager` is
attention that holds the scores of all pairs of tokens, as transformers' own plain version does. Each measurement runs
in a process of its own, with one thread, and is appended to the file of results as it ends: the same command resumes.
Memory is the peak of the resident set less what it was before (Linux).
"""

import argparse
import ctypes
import gc
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LENGTHS = (512, 2048, 8192)
EAGER, LONGEST_EAGER = "encode, eager", 2048  # the scores of 8,192 tokens would take 2.4 GB, several times
WAYS = ("encode", "step, checkpointed", "step", EAGER)


def measure(model, length, way):
    """One measurement, in this process."""
    import torch

    from sentloom import Encoder

    torch.set_num_threads(1)
    encoder = Encoder.load(model, device="cpu")
    ids = [[(7 * at) % 1000 + 10 for at in range(length)]]
    if way == "step, checkpointed":
        encoder.backbone.checkpoint_activations()
    if way == EAGER:
        encoder.backbone.model.set_attn_implementation("eager")
        encoder.backbone.packed = False
    training = way.startswith("step")
    encoder.train(training)
    encoder.backbone.freeze(0)
    for parameter in encoder.parameters() if training else ():
        if parameter.requires_grad:  # gradients are no part of what grows with the text
            parameter.grad = torch.ones_like(parameter)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that loading has freed would hide what is measured
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before, start = resident("VmRSS"), time.process_time()
    with torch.set_grad_enabled(training):
        vectors = encoder(ids)
        if training:
            vectors.square().sum().backward()
    return {"seconds": time.process_time() - start, "bytes": resident("VmHWM") - before}


def resident(what):
    """The memory of this process in bytes: now (VmRSS) or at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) * 1024


def write_shallow(model, layers, folder):
    """Some layers of a model as a folder."""
    from sentloom import Encoder
    from sentloom.encoder.reshaping import shrink

    shrink(Encoder.load(model, pooling="last", device="cpu"), layers).save(folder, golden=False)


def measure_all(given, known, folder):
    """What is not known yet, each in a process of its own."""
    done = {(result["model"], result["layers"], result["length"], result["way"]) for result in known}
    for length, way in [(length, way) for length in LENGTHS for way in WAYS]:
        if (given.model, given.layers, length, way) in done or (way == EAGER and length > LONGEST_EAGER):
            continue
        child = [sys.executable, __file__, folder, "--only", str(length), way]
        ran = subprocess.run(child, stdout=subprocess.PIPE, text=True, check=True)
        result = {"model": given.model, "layers": given.layers, "length": length, "way": way, **json.loads(ran.stdout)}
        with given.results.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{length:6,} {way:20} {result['bytes'] / 2**20:8,.0f} MiB {result['seconds']:7.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--results", type=Path, default=Path("long_texts.jsonl"))
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)  # length and way: in the child
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measure(given.model, int(given.only[0]), given.only[1])))
        return
    known = [json.loads(line) for line in given.results.read_text().splitlines()] if given.results.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        write_shallow(given.model, given.layers, folder)
        measure_all(given, known, folder)


if __name__ == "__main__":
    main()
