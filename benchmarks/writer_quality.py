"""What fine-tuning makes of smollm2, next to itself with shots and to a small T5.

    sentloom models get smollm2
    python -m benchmarks.writer_quality DATA [-o out/writer-quality] [--small-t5 runs/small-synthesizer/model]
                                             [--premises 200] [--rows 600] [--steps N] [--precision bf16]

DATA has nli/pairs and sts, as the recipe `smollm2-nli` says, which is trained first. Then every model judges and
writes for premises of SNLI and MNLI that the recipes `smollm2-nli` and `small-synthesizer` hold out, by their hash:

- perplexity of the human sentences, per token of the model and so comparable for one tokenizer only, and bits per
  character, comparable for all;
- accuracy of the judgements (entailment or contradiction);
- yield: the share of texts that the model's own judge gives 0.9 or more, and of those that all filters keep;
- copying: the share of a text that is one run of words of its premise, on average; and diversity: different pairs of
  neighbouring words over all of them.

OUT/table.md has the table, OUT/samples.md what each wrote for the same 20 premises, as it came. Every part resumes.
Planned for 60 minutes of two quiet cores, 45 of them for training.
"""

import argparse
import itertools
import math
import os
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.against_script import kept
from sentloom import read
from sentloom.data.nli import ENTAILMENT
from sentloom.encoder.locate import locate
from sentloom.lab import synthesize, train
from sentloom.lab.synthesizer import Instance, labelled, losses
from sentloom.lab.writer_training import apart, rows_of
from sentloom.search.words import words_of
from sentloom.writing.filters import KEPT, copied_share
from sentloom.writing.judges import judge
from sentloom.writing.ledger import Ledger
from sentloom.writing.models import SMOLLM2, open_model
from sentloom.writing.writer import NLI_KINDS, prompts_for

RECIPE, HELD_OUT = "smollm2-nli", 0.03  # of the premises, in both recipes
FILES = ("SNLI.dev", "SNLI.test", "SNLI.train18k", "MNLI.dev_matched", "MNLI.dev_mismatched", "MNLI.train10k")
THRESHOLD, SAMPLES, SEED = 0.9, 20, 1


def held_out_rows(data, count):
    """(premise, hypothesis, kind), at random: of premises that no recipe trains on."""
    found = []
    for name in FILES:
        _, rows = apart(read(data / f"nli/pairs/{name}.tsv"), HELD_OUT)
        found += labelled(rows_of(rows, 0, len(rows)))
    order = np.random.default_rng(SEED).permutation(len(found))
    return [found[row] for row in order[:count]]


# ---------------------------------------------------------------- measures


@torch.inference_mode()
def likelihood(model, rows):
    """Perplexity per token and bits per character of the human sentences, after the prompts that it writes with."""
    shown = prompts_for(NLI_KINDS, "English", None, model.learned)
    prompts = {kind: model.prompt_ids(one) for kind, (one,) in shown.items()}
    premises, targets = model.sentences([row[0] for row in rows]), model.targets([row[1] for row in rows])
    asked = [
        Instance(model.framed(prompts[kind], [premise]), model.closed(target), judged=False)
        for premise, target, (_, _, kind) in zip(premises, targets, rows, strict=True)
    ]
    nats = sum(each.sum().item() for _, each, _ in losses(model, asked))
    tokens, characters = sum(len(one.target) for one in asked), sum(len(row[1]) for row in rows)
    return {"perplexity": math.exp(nats / tokens), "bits": nats / math.log(2) / characters}


def accuracy(model, rows):
    """The share of correct judgements."""
    chances = judge(model, [row[:2] for row in rows])
    return fmean((chance > 0.5) == (row[2] == ENTAILMENT) for chance, row in zip(chances, rows, strict=True))


def measured(name, rows, premises, folder):
    """All measures of one model, and its samples."""
    print(f"measuring {name}", flush=True)
    model = open_model(name).eval()
    found = {**likelihood(model, rows), "accuracy": accuracy(model, rows)}
    synthesize(premises, folder, writer=name, filters={"threshold": THRESHOLD})
    return {**found, "kinds": {kind: texts_of_kind(kind, folder) for kind in NLI_KINDS}}


def texts_of_kind(kind, folder):
    """How much of what was written is good, copied and different."""
    rows = [row for table in Ledger.open(folder).tables() for row in table.to_pylist()]
    reasons = pq.read_table(folder / "reasons.parquet")["reason"].to_pylist()
    some = [(row, why) for row, why in zip(rows, reasons, strict=True) if row["kind"] == kind]
    return {
        "sure": fmean(row["score"] >= THRESHOLD for row, _ in some),
        "kept": fmean(why == KEPT for _, why in some),
        "copied": fmean(copied_share(row["text"], row["source_text"]) for row, _ in some),
        "diversity": diversity([row["text"] for row, _ in some]),
        "samples": [[row["source_text"], row["text"], row["score"], why] for row, why in some[:SAMPLES]],
    }


def diversity(texts):
    """Different pairs of neighbouring words, as a share of all of them."""
    pairs = [pair for text in texts for pair in itertools.pairwise(words_of(text))]
    return len(set(pairs)) / max(1, len(pairs))


# ---------------------------------------------------------------- tables


def table(found):
    """One line per model and kind."""
    head = ["writer", "perplexity", "bits per character", "judge", "kind", "sure at 0.9", "kept", "copied", "diversity"]
    lines = []
    for name, one in found.items():
        own = [name, f"{one['perplexity']:.1f}", f"{one['bits']:.2f}", f"{one['accuracy']:.1%}"]
        for kind, texts in one["kinds"].items():
            shares = [f"{texts[measure]:.1%}" for measure in ("sure", "kept", "copied", "diversity")]
            lines.append([*own, kind, *shares])
            own = [""] * len(own)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def samples(found):
    """What every model wrote for the same premises, as it came."""
    lines = []
    for kind in NLI_KINDS:
        lines.append(f"## {kind}\n")
        for several in zip(*(one["kinds"][kind]["samples"] for one in found.values()), strict=True):
            lines.append(f"- {several[0][0]}")
            for name, (_, text, score, why) in zip(found, several, strict=True):
                lines.append(f"  - {name}: {text} ({score:.2f}{f', {why}' if why else ''})")
        lines.append("")
    return "\n".join(lines)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/writer-quality"))
    parser.add_argument("--writer", default="smollm2", help="the model that is fine-tuned")
    parser.add_argument("--small-t5", help="what the recipe small-synthesizer gave; by default left out")
    parser.add_argument("--premises", type=int, default=200, help="that something is written for")
    parser.add_argument("--rows", type=int, default=600, help="held-out rows for perplexity and accuracy")
    parser.add_argument("--steps", type=int, help="of fine-tuning; by default those of the recipe")
    parser.add_argument("--precision", help="of fine-tuning; bf16 is faster on CPUs that compute in it")
    arguments = parser.parse_args(given)
    out = arguments.output.absolute()
    os.environ["SENTLOOM_DATA"] = str(arguments.data.absolute())
    changes = {"writer.model": arguments.writer, **({"writer.steps": arguments.steps} if arguments.steps else {})}
    train(RECIPE, out / RECIPE, set=changes, precision=arguments.precision, log=print)
    rows = held_out_rows(arguments.data, arguments.rows)
    premises = list(dict.fromkeys(row[0] for row in rows))[: arguments.premises]
    published = str(locate(SMOLLM2)) if arguments.writer == SMOLLM2 else arguments.writer
    writers = {"with shots": published, "fine-tuned": str(out / RECIPE / "model")}
    writers |= {"small T5": arguments.small_t5} if arguments.small_t5 else {}
    found = {}
    for name, model in writers.items():
        place = out / name.replace(" ", "-")
        found[name] = kept(place.with_suffix(".json"), partial(measured, model, rows, premises, place))
    (out / "table.md").write_text(f"{table(found)}\n", "utf-8")
    (out / "samples.md").write_text(samples(found), "utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
