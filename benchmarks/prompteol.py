"""What a prompt makes of a causal model that was never trained for vectors: PromptEOL (Jiang et al., 2023) on STS-B.

    python benchmarks/prompteol.py MODEL DATA [--set STS-B] [--precision bf16]

MODEL is a causal model, DATA a folder with sts/STSB.test.tsv. Printed are Spearman's correlations x 100 of the mean of
all tokens, of the last token, and of the last token behind the prompt, with the seconds each takes.
"""

import argparse
import time

from sentloom import Encoder, Prompt, evaluate
from sentloom.encoder.pooling import Pooling

PROMPT = Prompt('This sentence : "', '" means in one word:"')
WAYS = {"mean": ("mean", Prompt()), "last": ("last", Prompt()), "PromptEOL": ("last", PROMPT)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--set", default="STS-B")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    given = parser.parse_args()
    encoder = Encoder.load(given.model, pooling="last", precision=given.precision)
    for name, (pooling, prompt) in WAYS.items():
        encoder.pooling, encoder.prompts = Pooling.parse(pooling), {"symmetric": prompt}
        start = time.perf_counter()
        scores = evaluate({name: encoder}, given.set, data=given.data, cache_size=0).scores[name]
        print(f"{name:10} {scores[given.set]:6.2f}  {time.perf_counter() - start:6.0f} s", flush=True)


if __name__ == "__main__":
    main()
