"""Encoding against sentence-transformers, interleaved in one run: the embedded encoder, fp32, all cores.

    python benchmarks/encode_speed.py [--rounds 7] [--sentences 1500]

Prints for real short sentences and for mixed lengths (5 to 200 words) the median ratio over the rounds, the greatest
difference of a vector's component, and the share of the machine's matrix-multiplication peak that was reached.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from sentloom import Encoder, read
from sentloom.data.corpus.docstrings import harvest
from sentloom.encoder.locate import embedded_folder

STS = Path(__file__).parents[2] / "shared/data/sts"
HIDDEN, INNER, LAYERS = 384, 1536, 6  # of the embedded encoder


def real_sentences(number):
    """Distinct STS sentences, or docstring sentences where that data is absent, in a fixed random order."""
    if STS.is_dir():
        sets = [read(STS / f"STS{year}.tsv") for year in (12, 13, 14, 15)]
        texts = {text for data in sets for _, _, text in data.sentences()}
        origin = "STS12-15"
    else:
        texts = set(harvest(["scipy"]).texts("held-out").column("text").to_pylist())
        origin = "scipy docstrings"
    return origin, np.random.default_rng(0).permutation(sorted(texts))[:number].tolist()


def mixed_lengths(sentences, number):
    """Stretches of 5 to 200 words of running text."""
    generator = np.random.default_rng(1)
    words = " ".join(sentences).split()
    sizes = generator.integers(5, 201, number)
    return [
        " ".join(words[start : start + size])
        for start, size in zip(generator.integers(0, len(words) - 200, number), sizes, strict=True)
    ]


def flops(lengths):
    """Multiplications and additions of a forward pass: four projections, the two inner layers, attention."""
    dense = sum(lengths) * 2 * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER)
    attention = sum(4 * length * length * HIDDEN for length in lengths)
    return LAYERS * (dense + attention)


def seconds(job):
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def gemm_rate():
    """Operations a second of one large matrix product."""
    size = 2048
    left, right = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: left @ right) for _ in range(3))


def compare(name, texts, rounds, ours, theirs):
    work = flops([len(ids) for ids in ours.tokenize(texts)])
    jobs = {
        "sentloom": lambda: ours.encode(texts),
        "sentence-transformers": lambda: theirs.encode(texts, batch_size=32, show_progress_bar=False),
    }
    difference = np.abs(jobs["sentloom"]() - jobs["sentence-transformers"]()).max()
    took, peaks = {job: [] for job in jobs}, []
    for turn in range(rounds):
        for job in sorted(jobs, reverse=turn % 2 == 1):
            took[job].append(seconds(jobs[job]))
        peaks.append(gemm_rate())
    ratios = [slow / fast for slow, fast in zip(took["sentence-transformers"], took["sentloom"], strict=True)]
    rate = len(texts) / statistics.median(took["sentloom"])
    share = work / statistics.median(took["sentloom"]) / max(peaks)
    print(
        f"{name}: {len(texts)} texts, {statistics.median(ratios):.2f}x sentence-transformers "
        f"(rounds {min(ratios):.2f} to {max(ratios):.2f}), {rate:.0f} texts/s, "
        f"greatest difference {difference:.1e}, {share:.0%} of the GEMM peak ({max(peaks) / 1e9:.0f} GFLOP/s)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=1500)
    options = parser.parse_args()
    origin, sentences = real_sentences(options.sentences)
    ours, theirs = Encoder.load("embedded", device="cpu"), SentenceTransformer(str(embedded_folder()), device="cpu")
    compare(f"short ({origin})", sentences, options.rounds, ours, theirs)
    compare("mixed (5-200 words)", mixed_lengths(sentences, options.sentences // 6), options.rounds, ours, theirs)


if __name__ == "__main__":
    main()
