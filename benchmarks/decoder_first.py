"""What the decoder's first state costs over the encoder's mean, for a T5 of equal layers.

    python benchmarks/decoder_first.py [--rounds 9]

A random T5 of the small size (6 + 6 layers of 512) encodes real sentences both ways, interleaved; printed is the
median ratio of times. The only expensive part of one decoder step is the keys and values of the sentence's tokens.
"""

import argparse
import statistics
import tempfile
import time

import torch
from transformers import T5Config, T5Model

from sentloom import Encoder
from sentloom.data.corpus.docstrings import harvest
from sentloom.encoder.locate import embedded_folder


def small_t5(folder):
    """A T5 of the small size with random weights; the embedded encoder's tokenizer serves it."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    torch.manual_seed(0)
    T5Model(T5Config(vocab_size=len(tokenizer), decoder_start_token_id=0)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    texts = harvest(["numpy"], held_out=[]).texts("train").column("text").to_pylist()[:256]
    with tempfile.TemporaryDirectory() as folder:
        small_t5(folder)
        encoders = [Encoder.load(folder, pooling=how) for how in ("mean", "decoder-first")]
    times = []
    for _ in range(given.rounds + 1):
        took = []
        for encoder in encoders:
            start = time.perf_counter()
            encoder.encode(texts)
            took.append(time.perf_counter() - start)
        times.append(took)
    ratios = sorted(second / first for first, second in times[1:])
    mean, decoder = (statistics.median(column) for column in zip(*times[1:], strict=True))
    print(f"{len(texts)} sentences: encoder-mean {mean:.3f} s, decoder-first {decoder:.3f} s")
    print(f"median ratio {statistics.median(ratios):.2f}x (from {ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
