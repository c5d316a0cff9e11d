"""Time, memory and recall of `dedupe`'s comparison, without encoding: families of near vectors in a memory map.

    python -m benchmarks.dedupe [--rows 50000,100000,200000] [--dimension 384]

A fifth of the vectors are in families of five with cosines of about 0.95, the others are random directions around a
few hundred topics. The last line has the exponent of time over rows.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from sentloom.search.duplicates import find_groups

TOPICS, FAMILY, SPREAD = 300, 5, 0.16


def write(path, rows, dimension):
    draw = np.random.default_rng(0)
    vectors = np.lib.format.open_memmap(path, "w+", np.float32, (rows, dimension))
    topics = draw.normal(size=(TOPICS, dimension))
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        part = topics[draw.integers(0, TOPICS, count)] + 0.8 * draw.normal(size=(count, dimension))
        near = part[: count // 5 // FAMILY].repeat(FAMILY, axis=0)
        part[: len(near)] = near + SPREAD * 1.28 * draw.normal(size=near.shape)
        vectors[start : start + count] = part
    vectors.flush()
    return np.load(path, mmap_mode="r")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="50000,100000,200000")
    parser.add_argument("--dimension", type=int, default=384)
    options = parser.parse_args()
    sizes, seconds = [int(rows) for rows in options.rows.split(",")], []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            vectors = write(Path(folder) / f"{rows}.npy", rows, options.dimension)
            began = time.process_time()
            groups = find_groups(vectors, 0.9)
            seconds.append(time.process_time() - began)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            grouped = np.bincount(groups.representatives)
            print(
                f"{rows:,} vectors: {seconds[-1]:.0f} s of CPU, at most {memory:.2f} GB with the mapped file, "
                f"{(grouped > 1).sum():,} groups, recall {groups.recall:.1%}",
                flush=True,
            )
    if len(sizes) > 1:
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"time grows with the {exponent:.2f}th power of the rows")


if __name__ == "__main__":
    main()
