"""Speed as the papers show it: Self-guided's Table 6 and Sentence-T5's Figure 5, as grids on this machine.

    python -m benchmarks.paper_speed [-o out/paper-speed] [--bert MODEL] [--t5 MODEL,...] [--sentences 1000]

Table 6: the seconds that mean pooling, WK pooling, a flow and SG-OPT take to encode as many sentences as STS-B's test
part has, and to be fitted or trained on all of its sentences, computed from fewer. Figure 5: sentences per second of
each T5 by length and batch. All of it is CPU time of one thread, so that other work on the machine matters little.
Without models, small ones with random weights are built; their size, not their weights, decides the speed. A measured
cell is kept in OUT/cells.json, so that a run that was killed resumes.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.lab.baselines.flow import fit_flow
from sentloom.lab.baselines.wk_pooling import wk_pooling
from sentloom.lab.init_model import Size, build_model
from sentloom.markdown import table

WORDS = "the red kite flies over an old town while two children watch it from a hill and wave".split()
LENGTHS, BATCHES = (16, 32, 64, 128), (1, 8, 32)
BERT_BATCH = 16  # the paper's
TRAINED, TESTED = 17_256, 2_758  # sentences of STS-B
STEPS = (5, 25)  # of SG-OPT: their difference has no loading in it


def sentences(count, words):
    """Different sentences of `words` words."""
    return [
        " ".join([*(WORDS[(start + at) % len(WORDS)] for at in range(words - 1)), str(start)]) for start in range(count)
    ]


def seconds(work):
    """The CPU time of the second call: the first one loads what is loaded once."""
    work()
    start = time.process_time()
    work()
    return time.process_time() - start


class Cells:
    """Measured cells, each written as soon as it is known."""

    def __init__(self, path):
        self.path, self.known = path, json.loads(path.read_text()) if path.is_file() else {}

    def get(self, name, measure):
        if name not in self.known:
            self.known[name] = measure()
            self.path.write_text(json.dumps(self.known, indent=1))
        return self.known[name]


def table_6(cells, model, texts, folder):
    """Mean pooling, WK pooling, flow and SG-OPT on one BERT."""
    base, first = (Encoder.load(model, pooling=pooling) for pooling in ("mean", "first"))
    wk, flow = wk_pooling(base), fit_flow(base, texts[:64])
    fitting = cells.get(f"{model} flow fitting {len(texts)}", lambda: seconds(lambda: fit_flow(base, texts)))
    step = cells.get(f"{model} SG-OPT step", lambda: seconds_per_step(model, texts, folder))
    ways = {
        "mean pooling": (base, None),
        "WK pooling": (wk, None),
        "flow": (flow, fitting * TRAINED / len(texts)),
        "SG-OPT": (first, step * TRAINED / BERT_BATCH),
    }
    rows = []
    for name, (encoder, fitted) in ways.items():
        encode = lambda encoder=encoder: encoder.encode(texts, batch_size=BERT_BATCH)  # noqa: E731 - bound now
        took = cells.get(f"{model} {name} {len(texts)}", lambda encode=encode: seconds(encode))
        rows.append((name, "" if fitted is None else f"{fitted:.1f}", f"{took * TESTED / len(texts):.1f}"))
    return table(["", "fitting or training, s", "encoding, s"], rows)


def seconds_per_step(model, texts, folder):
    """The CPU time of a training step of SG-OPT: that of more steps, less that of fewer."""
    file = folder / "texts.txt"
    file.write_text("\n".join(texts) + "\n", "utf-8")
    took = []
    for steps in STEPS:
        learn = stage("self-guided", preset="paper", data=str(file), steps=steps, batch=BERT_BATCH)
        with TemporaryDirectory() as place:
            (runner,) = prepare([Plan("sg", base=model, stages=(learn,))], Path(place), Accelerator(cpu=True), print)
            start = time.process_time()
            runner.run()
            took.append(time.process_time() - start)
    return (took[1] - took[0]) / (STEPS[1] - STEPS[0])


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
        build_model(
            place, family, sentences(200, 16), size=Size(vocabulary=200, layers=layers, width=width, max_length=512)
        )
    return str(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/paper-speed"))
    parser.add_argument("--bert")
    parser.add_argument("--t5", default="")
    parser.add_argument("--sentences", type=int, default=1000)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    bert = given.bert or built(given.output / "models", "bert", 6, 384)
    models = given.t5.split(",") if given.t5 else [built(given.output / "models", "t5", 2, size) for size in (128, 256)]
    cells = Cells(given.output / "cells.json")
    parts = [
        table_6(cells, bert, sentences(given.sentences, 16), given.output),
        figure_5(cells, models, given.sentences),
    ]
    (given.output / "table.md").write_text("\n\n".join(parts) + "\n", "utf-8")
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
