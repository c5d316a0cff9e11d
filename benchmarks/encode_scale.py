"""Cost and memory of encoding over the number of sentences: each size in a process of its own, into a .npy file.

    python benchmarks/encode_scale.py [--sizes 1000 10000 100000]

Prints seconds a thousand sentences, and the greatest memory of the process: anonymous (what it holds itself; the
memory-mapped output is not in it) as read from the kernel while it runs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

WORDS = "the a model train data small large vector sentence run with of in from and to over under test score".split()


def sentences(number):
    """Distinct sentences of 6 to 30 words, one at a time."""
    generator = np.random.default_rng(0)
    for i in range(number):
        yield f"{i} " + " ".join(generator.choice(WORDS, generator.integers(5, 30)))


def held():
    """Anonymous memory of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def child(number):
    from sentloom import Encoder, read
    from sentloom.encoder.vector_files import encode_to_file

    encoder = Encoder.load("embedded", device="cpu")
    encoder.encode(["warm", "up"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.txt"
        path.write_text("\n".join(sentences(number)), encoding="utf-8")
        texts = read(path).column("text")
        peak, done = [held()], threading.Event()
        watcher = threading.Thread(target=lambda: [peak.append(held()) for _ in iter(lambda: done.wait(0.05), True)])
        watcher.start()
        start = time.perf_counter()
        encode_to_file(encoder, texts, Path(folder) / "vectors.npy", source="benchmark")
        took = time.perf_counter() - start
        done.set()
        watcher.join()
    print(json.dumps({"seconds": took, "before": peak[0], "peak": max(peak)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    for size in options.sizes:
        run = subprocess.run(
            [sys.executable, __file__, "--child", str(size)], capture_output=True, text=True, check=True
        )
        found = json.loads(run.stdout)
        print(
            f"{size:>7,} sentences: {found['seconds'] / size * 1000:.2f} s a thousand, "
            f"memory {found['before']:.0f} MB before, {found['peak']:.0f} MB at most"
        )


if __name__ == "__main__":
    main()
