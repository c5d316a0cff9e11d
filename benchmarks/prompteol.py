"""What a prompt makes of a causal model that was never trained for vectors: PromptEOL (Jiang et al., 2023) on STS-B.

    python benchmarks/prompteol.py MODEL DATA [--pairs 150] [--precision bf16]

MODEL is a causal model, DATA a folder with sts/STSB.test.tsv, of which `--pairs` takes a random sample. Printed are
Spearman's correlations x 100 of the last token behind the prompt, and without it of the mean of all tokens and of the
last, with 95% intervals and the seconds each takes.
"""

import argparse
import csv
import random
import tempfile
import time
from pathlib import Path

from sentloom import Encoder, Prompt, evaluate
from sentloom.encoder.pooling import Pooling

PROMPT = Prompt('This sentence : "', '" means in one word:"')
WAYS = {"PromptEOL": ("last", PROMPT), "mean": ("mean", Prompt()), "last": ("last", Prompt())}


def sample(file, pairs, folder):
    """Some rows of a file, the same for every model, as another file."""
    with file.open(encoding="utf-8", newline="") as source:
        header, *rows = csv.reader(source, delimiter="\t", quoting=csv.QUOTE_NONE)
    chosen = random.Random(0).sample(rows, pairs)
    target = Path(folder) / file.name
    target.write_text("".join("\t".join(row) + "\n" for row in [header, *chosen]), "utf-8")
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, help="by default all")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.data / "sts/STSB.test.tsv"
        file = sample(file, given.pairs, folder) if given.pairs else file
        encoder = Encoder.load(given.model, pooling="last", precision=given.precision)
        for name, (pooling, prompt) in WAYS.items():
            encoder.pooling, encoder.prompts = Pooling.parse(pooling), {"symmetric": prompt}
            start = time.perf_counter()
            (scored,) = evaluate({name: encoder}, [str(file)], cache_size=0).suites[0].sets
            cell = scored.cells[name]["spearman"]
            seconds = time.perf_counter() - start
            print(f"{name:10} {cell.value:6.2f} ({cell.low:.1f} to {cell.high:.1f})  {seconds:6.0f} s", flush=True)


if __name__ == "__main__":
    main()
