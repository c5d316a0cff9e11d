"""What each route and each rule contributes on its own: directions, negatives, guides, lengths, merging, losses.

    pip install --no-deps home-assistant-intents==2026.10.27 && sentloom models get bge-small reranker
    python -m benchmarks.ablations DATA [-o out/ablations] [--sets medquad,trivia,intents,stsb-de,medquad-text]
                                        [--seeds 2] [--steps 60] [--guide bge-small] [--precision fp32]

Every variant is a recipe of its own that differs from the first of its set in one thing, and trains for the same number
of steps on the same rows (`real_sets`). Test rows, whole clusters that no variant saw, are scored with plain numpy
(`plain_scores`); intervals are paired and over clusters. `medquad-text` learns from the answers of MedQuAD as raw text
and is asked the questions; as titles it has the diseases that the questions name. --guide names another encoder that
filters negatives; with "" there is none. The variant "in the other precision" trains in bf16, or in fp32 with
--precision bf16. A scored variant is kept in OUT, so that a run that was killed resumes; OUT/table.md has the table.
Planned for 60 minutes of one core.
"""

import argparse
import csv
import json
import random
import re
import shutil
import time
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.plain_scores import item_clusters, item_scores
from benchmarks.real_sets import SETS
from sentloom.encoder.locate import embedded_folder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare, start_accelerator
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score

BATCH = 32
HIGH = 4.0  # the scores of pairs that mean much the same, from 0 to 5
TESTED = 500  # test rows of each set
PRECISIONS = {"fp32": "bf16", "bf16": "fp32"}  # each and the other one
OTHER_PRECISION = "in the other precision"
TOPIC = re.compile(
    r"(?:is \(are\)|about|of|for|by|related to|causes|diagnose|prevent|treat|Is) (.+?)(?: inherited)?[ ?]*$"
)

# ---------------------------------------------------------------- variants: stages by name, the reference first


def learn(files, steps, method="contrastive", data="train", **settings):
    """A training stage on one of the files, or on what an earlier stage made."""
    values = {"batch": BATCH, "steps": steps, "max_length": "auto", **settings}
    return stage(method, name="learn", data=files.get(data, data), **values)


def in_batches(files, steps, **settings):
    """The reference with as many rows in fewer steps or in more."""
    return {
        "batches of 64, half the steps": (learn(files, steps // 2, **settings, batch=2 * BATCH),),
        "batches of 16, twice the steps": (learn(files, 2 * steps, **settings, batch=BATCH // 2),),
    }


def from_pairs(files, steps, guide):
    """Questions and answers."""
    common = {"learning_rate": 5e-5}

    def mined(**settings):
        mine = stage("mine", name="mined", model="embedded", data=files["train"], **settings)
        return mine, learn(files, steps, data="stage:mined", **common)

    reference = learn(files, steps, **common)
    found = {
        "other answers of the batch": (reference,),
        "both directions": (learn(files, steps, directions="both", **common),),
        "known positives as negatives": (learn(files, steps, mask_duplicates=False, **common),),
        "guided by the base": (learn(files, steps, guided=True, **common),),
        "mined, no margin": mined(margin=-1.0),
        "mined, margin 0.05": mined(),
        "mined, at most 95% of the positive": mined(margin=0.0, at_most=0.95),
        "cut at 64 tokens": (learn(files, steps, max_length=64, **common),),
        "the base's 256 tokens": (learn(files, steps, max_length=256, **common),),
        **in_batches(files, steps, **common),
        OTHER_PRECISION: (reference,),
        **merged(reference),
    }
    if guide:
        found["guided by the guide"] = (learn(files, steps, guided=True, guide=guide, **common),)
        found["mined, filtered by the guide"] = mined(guide=guide)
    return found


def from_labels(files, steps, guide):
    """Labelled texts."""
    common = {"method": "supervised", "learning_rate": 1e-4}
    reference = learn(files, steps, **common)
    return {
        "supervised contrastive": (reference,),
        "at a rate of 5e-5": (learn(files, steps, **common | {"learning_rate": 5e-5}),),
        "two dropout views": (learn(files, steps, dropout_views=2, **common),),
        "positives below, as in the paper": (learn(files, steps, positives_below=True, **common),),
        "pairs made from labels": (learn(files, steps, data="pairs", learning_rate=5e-5),),
        **in_batches(files, steps, **common),
        OTHER_PRECISION: (reference,),
        **merged(reference),
    }


def from_scores(files, steps, guide):
    """Scored pairs."""
    reference = learn(files, steps, "cosent")
    return {
        "CoSENT": (reference,),
        "at a rate of 5e-5": (learn(files, steps, "cosent", learning_rate=5e-5),),
        "AnglE": (learn(files, steps, "angle"),),
        "AnglE without in-batch negatives": (learn(files, steps, "angle", in_batch_weight=0.0),),
        "high pairs only": (learn(files, steps, data="pairs", learning_rate=5e-5),),
        **in_batches(files, steps, method="cosent"),
        OTHER_PRECISION: (reference,),
        **merged(reference),
    }


def from_triplets(files, steps, guide):
    """Triplets."""
    reference = learn(files, steps, learning_rate=2e-5)
    return {
        "its own negative and those of the batch": (reference,),
        "at a rate of 5e-5": (learn(files, steps, learning_rate=5e-5),),
        "both directions": (learn(files, steps, learning_rate=2e-5, directions="both"),),
        **in_batches(files, steps, learning_rate=2e-5),
        OTHER_PRECISION: (reference,),
        **merged(reference),
    }


def from_text(files, steps, guide):
    """Raw text; the reference is the base."""

    def views(kind, **settings):
        made = stage("views", name="made", kind=kind, data=files["texts"], **settings)
        return made, learn(files, steps, data="stage:made", learning_rate=2e-5)

    spans = views("spans")
    return {
        "base": (),
        "SimCSE": (learn(files, steps, "simcse", "texts", learning_rate=1e-5),),
        "TSDAE": (learn(files, steps, "tsdae", "texts"),),
        "self-guided, pooled": (learn(files, steps, "self-guided", "texts", vector="pooled"),),
        "random spans": spans,
        "neighbouring passages": views("neighbours"),
        "title to body": (learn(files, steps, data="titles", learning_rate=5e-5, directions="both"),),
        **{f"random spans, {name}": (spans[0], *stages) for name, stages in merged(spans[1]).items()},
    }


def merged(reference):
    """The reference and the base, by the weight of the reference."""
    return {
        f"merged, {share:.2f} of it": (
            reference,
            stage("merge", name="merge", models=["stage:learn", "base"], weights=[share, 1 - share]),
        )
        for share in (0.25, 0.5, 0.75)
    }


VARIANTS = {
    "pairs": from_pairs,
    "labels": from_labels,
    "scores": from_scores,
    "triplets": from_triplets,
    "texts": from_text,
}

# ---------------------------------------------------------------- files


def write_files(train, folder):
    """The files that variants learn from: the rows, and what some variants make of them."""
    paths = {name: str(folder / f"{name}.csv") for name in ("train", "pairs", "texts", "titles")}
    train.write(paths["train"])
    if train.kind == "labels":
        write(paths["pairs"], ("anchor", "positive"), same_label(train["text"], train["label"]))
    if train.kind == "scores":
        rows = zip(train["sentence1"], train["sentence2"], train["score"], strict=True)
        write(paths["pairs"], ("anchor", "positive"), [(a, b) for a, b, score in rows if float(score) >= HIGH])
    if train.kind == "pairs":
        questions, answers = (train[name] for name in train.columns)
        write(paths["texts"], ("text",), [(text,) for text in dict.fromkeys(answers)])
        titles = [(topic(question), answer) for question, answer in zip(questions, answers, strict=True)]
        write(paths["titles"], ("anchor", "positive"), [row for row in titles if row[0]])
    return paths


def topic(question):
    """What a question of MedQuAD is about, as the title of its answer; "" if it is not of one of the usual forms."""
    found = TOPIC.search(question)
    return found[1] if found else ""


def write(path, header, rows):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def same_label(texts, labels):
    """Every text with another one of its label, by chance; a label with a single text gives none."""
    draw, by_label = random.Random(0), {}
    for text, label in zip(texts, labels, strict=True):
        by_label.setdefault(label, []).append(text)
    found = []
    for some in by_label.values():
        shuffled = draw.sample(some, len(some))
        found += zip(shuffled, [*shuffled[1:], shuffled[0]], strict=True) if len(some) > 1 else ()
    return found


# ---------------------------------------------------------------- running


class Ablation:
    """One set: its rows, files and variants, and what is known of them so far."""

    def __init__(self, name, arguments):
        self.name, self.folder, self.steps = name, arguments.output / name, arguments.steps
        self.folder.mkdir(parents=True, exist_ok=True)
        real, raw = SETS[name.removesuffix("-text")], name.endswith("-text")
        self.train, self.test = real.split(arguments.data, arguments.rows, min(TESTED, arguments.rows))
        files = write_files(self.train, self.folder)
        make = VARIANTS["texts" if raw else self.test.kind]
        every = make(files, arguments.steps, arguments.guide)
        wanted = arguments.variants.split(";") if arguments.variants else every
        self.variants = {name: every[name] for name in every if name in wanted}
        self.seeds, self.precision = range(1, arguments.seeds + 1), arguments.precision

    def file(self, variant, seed):
        """Where the scores of a run are; the base is the same under every seed."""
        return self.folder / f"{variant.replace(' ', '-')}{f'-{seed}' if self.variants.get(variant) else ''}.json"

    @property
    def missing(self):
        """The runs to do, by variant and seed."""
        every = [("base", 1), *((variant, seed) for variant in self.variants for seed in self.seeds)]
        files = {self.file(*run): run for run in every}  # the base is one run under all seeds
        return [run for file, run in files.items() if not file.exists()]

    def run(self, variant, seed):
        """Train and score one variant."""
        stages = self.variants.get(variant, ())
        folder = self.folder / "runs"
        plan = Plan(variant, base="embedded", stages=stages, seeds=(seed,))
        precision = PRECISIONS[self.precision] if variant == OTHER_PRECISION else self.precision
        accelerator = start_accelerator((), folder, lambda device: precision)
        (runner,) = prepare([plan], folder, accelerator, lambda line: None)
        (done,) = runner.run()
        self.score(variant, seed, done.model or embedded_folder(), done.seconds)

    def score(self, variant, seed, model, seconds):
        from sentence_transformers import SentenceTransformer

        items = item_scores(SentenceTransformer(str(model), device="cpu"), self.train, self.test)
        self.file(variant, seed).write_text(json.dumps({"items": items, "seconds": seconds}), "utf-8")

    def record(self, variant, seed):
        return json.loads(self.file(variant, seed).read_text("utf-8"))

    def scores(self, variant, metric):
        """A score with clusters for each seed."""
        clusters = item_clusters(self.train, self.test)
        runs = [np.array(self.record(variant, seed)["items"][metric]) for seed in self.seeds]
        if metric == "Spearman":
            gold = np.array(self.test["score"], float)
            return [Score("spearman", np.stack([run, gold], axis=1), clusters=clusters) for run in runs]
        return [Score("mean", run[:, None], clusters=clusters) for run in runs]

    def lines(self):
        """The lines of the table: every variant by the main metric, against the reference and against the base."""
        metric = next(iter(self.record("base", 1)["items"]))
        reference, base = (self.scores(variant, metric) for variant in (next(iter(self.variants)), "base"))
        for variant in dict.fromkeys(["base", *self.variants]):
            own = self.scores(variant, metric)
            cells = [difference(own, other) if own is not other else "" for other in (reference, base)]
            found = compare_averages(own, reference)
            seconds = fmean(self.record(variant, seed)["seconds"] for seed in self.seeds)
            score = fmean(one.value for one in own)
            yield [self.name, variant, metric, f"{score:.2f}", *cells, said(found), f"{seconds:.0f}"]


def difference(own, other):
    found = compare_averages(own, other)
    return f"{found.difference:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def said(found):
    """Whether the difference from the reference is shown."""
    return "helps" if found.low > 0 else "hurts" if found.high < 0 else "-"


def table(ablations):
    head = ["set", "variant", "metric", "score", "against the reference (95%)", "against the base (95%)", "", "seconds"]
    lines = [line for one in ablations if not one.missing for line in one.lines()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def run_all(ablations, output, table=table):
    """Do every run that is missing, and write and print the table."""
    total, done, start = sum(len(one.missing) for one in ablations), 0, time.perf_counter()
    for one in ablations:
        for variant, seed in one.missing:
            one.run(variant, seed)
            done += 1
            left = (time.perf_counter() - start) / done * (total - done) / 60
            print(f"{one.name}, {variant}, seed {seed}: done; about {left:.0f} minutes left", flush=True)
        shutil.rmtree(one.folder / "runs", ignore_errors=True)  # the models: 90 MB each
        (output / "table.md").write_text(table(ablations) + "\n", "utf-8")
    print(table(ablations))


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/ablations"))
    parser.add_argument("--sets", default="medquad,trivia,intents,stsb-de,medquad-text")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--guide", default="bge-small", help="another encoder that filters negatives")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of training")
    parser.add_argument("--variants", help="some of them, separated by semicolons; by default all")
    parser.add_argument("--rows", type=int, default=2000, help="training rows of each set")
    arguments = parser.parse_args(given)
    arguments.output = arguments.output.absolute()
    run_all([Ablation(name, arguments) for name in arguments.sets.split(",")], arguments.output)


if __name__ == "__main__":
    main()
