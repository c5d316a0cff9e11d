"""Speed as the papers show it: Self-guided's Table 6 and Sentence-T5's Figure 5, as grids on this machine.

    python -m benchmarks.paper_speed [-o out/paper-speed] [--bert MODEL] [--t5 MODEL,...] [--sentences 2000]

Table 6: the seconds to encode sentences with mean pooling, WK pooling and a flow, and to fit the flow. Figure 5:
sentences per second of each T5 by length and batch. Without models, small ones with random weights are built; their
size, not their weights, decides the speed. A measured cell is kept in OUT/cells.json, so that a run that was killed
resumes.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from sentloom.baselines import fit_flow, wk_pooling
from sentloom.encoder import Encoder
from sentloom.encoder.building import build_model
from sentloom.markdown import table

WORDS = "the red kite flies over an old town while two children watch it from a hill and wave".split()
LENGTHS, BATCHES = (16, 32, 64, 128), (1, 8, 32)
BERT_BATCH = 16  # the paper's


def sentences(count, words):
    """Different sentences of so many words."""
    return [
        " ".join([*(WORDS[(start + at) % len(WORDS)] for at in range(words - 1)), str(start)]) for start in range(count)
    ]


def seconds(work):
    """The time of the second call: the first one loads what is loaded once."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Cells:
    """Measured cells, each written as soon as it is known."""

    def __init__(self, path):
        self.path, self.known = path, json.loads(path.read_text()) if path.is_file() else {}

    def get(self, name, measure):
        if name not in self.known:
            self.known[name] = measure()
            self.path.write_text(json.dumps(self.known, indent=1))
        return self.known[name]


def table_6(cells, model, texts):
    """Mean pooling, WK pooling and flow on one BERT."""
    base = Encoder.load(model, pooling="mean")
    wk, flow = wk_pooling(base), fit_flow(base, texts[:64])
    fitting = cells.get(f"{model} flow fitting", lambda: seconds(lambda: fit_flow(base, texts)))
    ways = {"mean pooling": (base, None), "WK pooling": (wk, None), "flow": (flow, fitting)}
    rows = []
    for name, (encoder, fitted) in ways.items():
        encode = lambda encoder=encoder: encoder.encode(texts, batch_size=BERT_BATCH)  # noqa: E731 - bound now
        took = cells.get(f"{model} {name}", lambda encode=encode: seconds(encode))
        rows.append((name, "" if fitted is None else f"{fitted:.2f}", f"{took:.2f}"))
    return table(["", "fitting, s", "encoding, s"], rows)


def figure_5(cells, models, count):
    """Sentences per second of each T5, by length and batch."""
    rows = []
    for model in models:
        for pooling in ("mean", "decoder-first"):
            encoder = Encoder.load(model, pooling=pooling)
            for length in LENGTHS:
                texts, found = sentences(max(32, count * 16 // length), length), []
                for batch in BATCHES:
                    work = lambda texts=texts, batch=batch, encoder=encoder: encoder.encode(texts, batch_size=batch)  # noqa: E731
                    found.append(
                        cells.get(f"{model} {pooling} {length} {batch} {count}", lambda work=work: seconds(work))
                    )
                rows.append((Path(model).name, pooling, str(length), *(f"{len(texts) / one:.0f}" for one in found)))
    return table(["model", "pooling", "words", *(f"batch {batch}" for batch in BATCHES)], rows, 2)


def built(folder, family, layers, width):
    """A model of random weights, built once."""
    place = folder / f"{family}-{layers}-{width}"
    if not place.is_dir():
        build_model(place, family, sentences(200, 16), vocabulary=200, layers=layers, width=width)
    return str(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/paper-speed"))
    parser.add_argument("--bert")
    parser.add_argument("--t5", default="")
    parser.add_argument("--sentences", type=int, default=2000)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    bert = given.bert or built(given.output / "models", "bert", 6, 384)
    models = given.t5.split(",") if given.t5 else [built(given.output / "models", "t5", 2, size) for size in (128, 256)]
    cells = Cells(given.output / "cells.json")
    parts = [table_6(cells, bert, sentences(given.sentences, 16)), figure_5(cells, models, given.sentences)]
    (given.output / "table.md").write_text("\n\n".join(parts) + "\n", "utf-8")
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
