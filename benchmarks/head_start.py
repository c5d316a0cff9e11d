"""Why German STS-B fell in the cross-lingual claim: the start of the head, and the temperature.

    python -m benchmarks.head_start DATA [-o out/head-start]

DATA is a data folder (docs/sets.md). The embedded encoder learns German from itself in 60 steps, as in claims.py but
from a fifth of the sentences: with a head of random weights (as it was), one that starts as the identity, or none; with
a temperature learned from 1, or fixed at 0.05. About a minute of a core each; a run that was killed resumes.
"""

import argparse
from itertools import product
from pathlib import Path

import torch

from benchmarks.claim_variants import Setting
from benchmarks.claims import SETTINGS, Line, score, write_samples
from sentloom.encoder.heads import Projection
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare, start_accelerator
from sentloom.engine.schema import Evaluate
from sentloom.methods import cross_lingual

HEADS = {"random": "linear", "identity": "linear", "none": "none"}
TEMPERATURES = {"learned": {}, "0.05": {"temperature": 0.05, "learn_temperature": False}}
build_head = cross_lingual.build_head


def random_head(method, kind, width_in, width_out):
    """The head as it was before it started as the identity."""
    torch.manual_seed(0)
    return Projection(width_in, width_out, activation="identity")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/head-start"))
    given = parser.parse_args()
    data, output = given.data.absolute(), given.output.absolute()
    accelerator = start_accelerator((), output)
    if not (output / "samples").is_dir():
        write_samples(data, output / "samples")
    setting = Setting(str(output / "samples"), **SETTINGS["embedded"])
    evaluate = Evaluate(sets=("STS-B de",), data=str(data))
    for (start, head), (name, temperature) in product(HEADS.items(), TEMPERATURES.items()):
        cross_lingual.build_head = random_head if start == "random" else build_head
        by = {"source": "embedded", "pooling": "mean", "queue": 0, "head": head, **temperature}
        learn = setting.learn("cross-lingual", **setting.rows("german", share=0.2), **by)
        plan = Plan(f"{start}, {name}", base="embedded", stages=(learn,), evaluate=evaluate)
        (runner,) = prepare([plan], output / start, accelerator, print)
        print(f"head {start}, temperature {name}: {score(Line('embedded', 'cross-lingual', runner), 1).value:.2f}")


if __name__ == "__main__":
    main()
