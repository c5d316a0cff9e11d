"""The papers' claims, measured at small scale: variants of each claim (claim_variants.py) on several bases.

    python -m benchmarks.claims DATA [-o out/claims] [--bases bert,embedded,t5] [--claims self-guided,gense] [--seeds 3]
                                [--writer FOLDER] [--share 1.0] [--precision fp32]

DATA is a data folder (docs/sets.md) with sts/, sts_multi/, nli/, pairs/, qa/, text/ and parallel/. A tuned encoder
hides what the papers show on raw ones, so that besides the embedded encoder there are two raw models, trained first and
cached in OUT/bases: a small BERT that learns English and German by `mlm` (20 minutes of a core), and a small T5 that
learns English by `denoising` (9 minutes), the only one with a decoder. Scores are Spearman on the test part of STS-B,
of which no sentence is trained on, or of its German translation. A difference from a claim's first variant is a mean
over seeds, with a 95% interval over sentence pairs; the deviation over seeds is beside the score. GenSE's writer is
`smollm2`, which was trained for that (docs/results-synthesis.md), or that in FOLDER; it writes once for all bases.

The first seed of all claims and bases comes first, then the others. OUT/table.md is written after every variant. A run
that was killed resumes; so does one with more seeds, claims or bases than the last. About 2.5 hours of a core per seed.
`--share 0.02` trains all models for 2% of the steps, to see that everything runs.
"""

import argparse
import gzip
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claim_variants import CLAIMS, SAMPLES, Setting, Variant
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import Runner, prepare, start_accelerator
from sentloom.engine.schema import Evaluate
from sentloom.errors import TrainingStopped
from sentloom.evaluation.bench import read_scores, score_file
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score
from sentloom.files import new_file, new_folder
from sentloom.lab.init_model import Size, build_model
from sentloom.markdown import table
from sentloom.writing.triplets import TRIPLETS

ADAFACTOR = {"optimizer": "adafactor", "scale_parameter": True}
SETTINGS = {  # steps and learning rate by base
    "bert": {"steps": 200, "rate": 3e-4},
    "embedded": {"steps": 60, "rate": 5e-5},
    "t5": {"steps": 200, "rate": 1e-2, "optimizer": ADAFACTOR},
}
BERT_STEPS, T5_STEPS = 3000, 500
RAW = "raw.txt"
WRITTEN_SHARE = 0.006  # of the sentences
HELD_OUT = ("sts-b/dev", "sts-b", "STS12", "STS13", "STS14", "STS15")  # whose sentences are not written for


@dataclass
class Line:
    """A variant on a base, and its score under each seed so far."""

    base: str
    claim: str
    runner: Runner
    scores: dict[int, Score] = field(default_factory=dict)
    stopped: str = ""  # why its training stopped, if it did


def write_samples(data, folder):
    """The rows that are trained on, and the raw text of the bases: English and German sentences, one per line."""
    with new_folder(folder) as part:
        for name, (file, every) in SAMPLES.items():
            head, *rows = lines_of(data / file)
            (part / f"{name}.tsv").write_text("\n".join([head, *rows[::every]]) + "\n", "utf-8")
        english = [row.split("\t")[0] for row in lines_of(data / SAMPLES["texts"][0])[1:]]
        german = [row.split("\t")[1] for row in lines_of(data / SAMPLES["german"][0])[1:]]
        (part / RAW).write_text("\n".join([*english, *german]) + "\n", "utf-8")


def lines_of(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().rstrip("\n").split("\n")


def base_model(name, given, accelerator):
    """The folder of a base; a raw one is built and trained, once."""
    if name == "embedded":
        return name
    folder = given.output / "bases"
    text, start = str(given.output / "samples" / RAW), folder / f"random-{name}"
    if not start.is_dir():
        lines = Path(text).read_text("utf-8").splitlines()
        build_model(start, name, lines[::3], size=Size(vocabulary=8000, layers=4 if name == "bert" else 2, width=256))
    if name == "bert":
        steps = max(2, round(BERT_STEPS * given.share))
        learn = stage("mlm", data=text, batch=64, steps=steps, learning_rate=1e-3, max_length=48)
        plan = Plan(name, base=str(start), stages=(learn,))
    else:
        steps = max(2, round(T5_STEPS * given.share))
        by = {"source_length": 48, "target_length": 32, "batch": 64, "dropout": 0.0}
        plan = Plan(name, base=None, stages=(stage("denoising", model=str(start), data=text, steps=steps, **by),))
    (runner,) = prepare([plan], folder, accelerator, print)
    runner.run()
    return str(runner.artifacts[plan.stages[0].name].source)


def written_triplets(given, accelerator):
    """The files of the triplets that the writer writes, once for all bases, as in the recipe gense-small.

    A share of them (`data_share`) would be all: it goes by the hash of the text, as the share of the sentences did.
    """
    some = {"data_share": max(0.0005, WRITTEN_SHARE * given.share), "drop_leaks": True}
    written = stage(
        "synthesize", name="written", model=given.writer, data=str(given.data / SAMPLES["texts"][0]), **some
    )
    evaluate = Evaluate(sets=HELD_OUT, data=str(given.data))
    plan = Plan("written", base=None, stages=(written,), evaluate=evaluate)
    (runner,) = prepare([plan], given.output / "written", accelerator, print)
    runner.run()
    every, fewer = Path(runner.artifacts["written"].source) / TRIPLETS, given.output / "written" / "fewer.parquet"
    table = pq.read_table(every)
    with new_file(fewer) as part:
        pq.write_table(table.take([row for row in range(len(table)) if row % 5 < 2]), part)
    return {"synthetic": str(every), "fewer": str(fewer)}


def prepared(name, base, given, accelerator):
    """The lines of all claims on a base."""
    found = []
    values = SETTINGS[name]
    steps = max(2, round(values["steps"] * given.share))
    setting = Setting(str(given.output / "samples"), **given.written, **{**values, "steps": steps})
    for claim in given.claims:
        if name not in CLAIMS[claim].bases:
            continue
        evaluate = Evaluate(sets=(CLAIMS[claim].scored_on,), data=str(given.data))
        plans = [planned(label, variant, base, evaluate) for label, variant in CLAIMS[claim].variants(setting).items()]
        found += [Line(name, claim, runner) for runner in prepare(plans, given.output / name, accelerator, print)]
    return found


def planned(label: str, variant: Variant, base, evaluate):
    return Plan(
        label, base=base, stages=variant.stages, evaluate=evaluate, pooling=variant.pooling, prompt=variant.prompt
    )


def score(line, seed):
    """The items of a line's score under a seed; every pair of sentences is a cluster that all seeds share."""
    runner = line.runner
    result = runner.run_seed(seed)
    (one,) = runner.evaluation_sets
    model = runner.artifacts[runner.plan.stages[-1].name].fingerprint if runner.plan.stages else runner.base_fingerprint
    scores = read_scores(score_file(runner.folder / "scores", model, one.task))
    assert scores is not None, result.plan
    found = scores[one.task.main]
    clusters = np.arange(len(found.items)) if found.clusters is None else found.clusters
    return replace(found, clusters=clusters)


def row(line, first):
    """Variant, score, difference from the first variant and its interval."""
    if not line.scores:
        return line.runner.plan.name, line.stopped, ""
    values = [one.value for one in line.scores.values()]
    own = f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")
    shared = [seed for seed in line.scores if seed in first.scores]
    if line is first or not shared:
        return line.runner.plan.name, own, ""
    away = compare_averages([line.scores[seed] for seed in shared], [first.scores[seed] for seed in shared])
    return line.runner.plan.name, own, f"{away.difference:+.2f} ({away.low:+.2f} to {away.high:+.2f})"


def write_table(lines, folder):
    """Every line that has a score, by base and claim."""
    parts, values = [], []
    groups = dict.fromkeys((line.claim, line.base) for line in lines if line.scores or line.stopped)
    for claim, base in groups:
        own = [line for line in lines if (line.claim, line.base) == (claim, base)]
        done = [line for line in own if line.scores or line.stopped]
        head = ["variant", CLAIMS[claim].scored_on, "difference from the first (95% interval)"]
        seeds = max(len(line.scores) for line in done)
        parts.append(f"### {claim}, {base}, seeds: {seeds}\n\n" + table(head, [row(line, own[0]) for line in done]))
        values += [
            [claim, base, line.runner.plan.name, {seed: one.value for seed, one in line.scores.items()}]
            for line in done
        ]
    (folder / "table.json").write_text(json.dumps(values, indent=1))
    (folder / "table.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def measure(line, seed, lines, folder):
    """One variant under one seed. One without stages has the same score under every seed."""
    if not line.runner.plan.stages and line.scores:
        line.scores[seed] = next(iter(line.scores.values()))
        return
    start = time.process_time()
    try:
        line.scores[seed] = score(line, seed)
    except TrainingStopped as error:
        line.stopped = f"stopped: {error.problem}"
    took = time.process_time() - start
    print(f"{line.base}, {line.claim}, {line.runner.plan.name}, seed {seed}: {took:.0f} s of CPU", flush=True)
    write_table(lines, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/claims"))
    parser.add_argument("--bases", type=lambda text: text.split(","), default=list(SETTINGS))
    parser.add_argument("--claims", type=lambda text: text.split(","), default=list(CLAIMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--writer", default="smollm2")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="of training")
    given = parser.parse_args()
    given.data, given.output = given.data.absolute(), given.output.absolute()
    accelerator = start_accelerator((), given.output, lambda device: given.precision)
    if not (given.output / "samples").is_dir():
        write_samples(given.data, given.output / "samples")
    given.written = written_triplets(given, accelerator) if "gense" in given.claims else {}
    lines = []
    for seed in range(1, given.seeds + 1):
        for name in given.bases:
            if seed == 1:
                lines += prepared(name, base_model(name, given, accelerator), given, accelerator)
            for line in lines:
                if line.base == name:
                    measure(line, seed, lines, given.output)
    print((given.output / "table.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
