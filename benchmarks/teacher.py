"""What a teacher gives an encoder on raw text alone, in nine domains, asked afterwards with queries that people wrote.

    pip install --no-deps home-assistant-intents==2026.10.27 && sentloom models get bge-small e5-multilingual
    python -m benchmarks.teacher DATA [-o out/teacher] [--sets intents,quora,...] [--seeds 1] [--steps 150]
                                      [--rate 2e-4] [--texts 2000] [--test 300] [--teacher bge-small]
                                      [--variants "teacher;ranking"]

Only the texts of a domain (`real_sets`) are given: the answers, one side of duplicate questions, commands, or
sentences. The embedded encoder learns a teacher's neighbourhoods (`teacher`, in batches of 64 texts beside a queue of
512), or, where texts have several sentences, how the teacher ranks them for single sentences (`ranking`, 24 at a
time). Test rows are scored with plain numpy (`plain_scores`): human questions search all answers, duplicate questions
search each other, commands search commands of their intent, similarities are correlated with people's. Intervals are
paired and over clusters. The teacher itself is scored on the same rows. Nothing was tuned on WikiQA, QNLI, German and
Chinese. A scored run is kept in OUT, so that a run that was killed resumes; OUT/table.md has the table.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.ablations import PRECISIONS, Ablation, difference, run_all, write
from benchmarks.plain_scores import item_scores
from benchmarks.raw_domains import texts_of
from benchmarks.real_sets import SETS
from sentloom.encoder import Encoder
from sentloom.engine.building import stage

DOMAINS = "intents,quora,trivia,selqa,medquad,wikiqa,qnli,stsb-de,stsb-zh"
MULTILINGUAL = ("stsb-de", "stsb-zh")
PASSAGES = ("selqa", "medquad", "wikiqa", "qnli")  # whose texts have several sentences
ITSELF = "the teacher itself"
LENGTH = 64  # tokens that texts are cut to in training


def learn(steps, source, data, **settings):
    """A training stage with this teacher."""
    common = {"sources": (source,), "max_length": LENGTH, "log_every": 10}
    return stage("teacher", name="learn", data=data, steps=steps, **common, **settings)


def variants(texts, steps, source, has_passages, rate=2e-4):
    """What learns from a file of texts; the reference is the base."""
    found = {"base": (), "teacher": (learn(steps, source, texts, learning_rate=rate),)}
    if has_passages:
        short = stage("views", name="short", kind="sentences", data=texts)
        ranked = {"model": "embedded", "data": "stage:short", "negatives": 40, "depth": 60, "margin": -1.0}
        mine = stage("mine", name="ranked", **ranked)
        found["ranking"] = (short, mine, learn(steps, source, "stage:ranked", preset="ranking"))
    return found


class Domain(Ablation):
    """One domain: its texts, what learns from them, and the hidden queries."""

    def __init__(self, name, arguments):
        self.name, self.folder = name, arguments.output / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.train, self.test = SETS[name].split(arguments.data, arguments.texts, arguments.test)
        texts = self.folder / "texts.csv"
        write(texts, ("text",), [(text,) for text in domain_texts(self.train, self.test)])
        self.source = "e5-multilingual" if name in MULTILINGUAL else arguments.teacher
        every = variants(str(texts), arguments.steps, self.source, name in PASSAGES, arguments.rate)
        self.variants = {**{key: every[key] for key in every if key in ("base", *arguments.variants)}, ITSELF: ()}
        self.seeds, self.precision = range(1, arguments.seeds + 1), arguments.precision

    def run(self, variant, seed):
        """Train and score one variant; the teacher is only scored."""
        if variant == ITSELF:
            self.score(variant, seed, self.source, 0.0)
        else:
            super().run(variant, seed)

    def score(self, variant, seed, model, seconds):
        """As the model itself encodes, without prompts."""
        began, encoder = time.perf_counter(), Unit(Encoder.load(model))
        items = item_scores(encoder, self.train, self.test)
        record = {"items": items, "seconds": seconds, "scoring": time.perf_counter() - began}
        self.file(variant, seed).write_text(json.dumps(record), "utf-8")

    def lines(self):
        """Base, student and teacher by the main metric, and the share of the teacher's lead that the student keeps."""
        metric = next(iter(self.record("base", 1)["items"]))
        base, teacher = self.scores("base", metric), self.scores(ITSELF, metric)
        lead = mean(teacher) - mean(base)
        for variant in self.variants:
            own = self.scores(variant, metric)
            gain = "" if variant == "base" else difference(own, base)
            kept = f"{(mean(own) - mean(base)) / lead:.0%}" if lead > 0 and variant not in ("base", ITSELF) else ""
            seconds = np.mean([self.record(variant, seed)["seconds"] for seed in self.seeds])
            yield [self.name, variant, metric, f"{mean(own):.2f}", gain, kept, f"{seconds:.0f}", f"{len(self.seeds)}"]


def domain_texts(train, test):
    """What is given of a domain; of scored pairs, the sentences of training rows."""
    if train.kind == "scores":
        return list(dict.fromkeys([*train["sentence1"], *train["sentence2"]]))
    return texts_of(train, test)


def mean(scores):
    return float(np.mean([score.value for score in scores]))


class Unit:
    """An encoder as `plain_scores` calls a model: vectors of length 1."""

    def __init__(self, encoder):
        self.encoder = encoder

    def encode(self, texts, **_):
        vectors = self.encoder.encode(texts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def table(domains):
    head = ["set", "variant", "metric", "score", "gain over the base (95%)", "of the lead", "seconds", "seeds"]
    lines = [line for domain in domains if not domain.missing for line in domain.lines()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/teacher"))
    parser.add_argument("--sets", default=DOMAINS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rate", type=float, default=2e-4, help="of `teacher`")
    parser.add_argument("--texts", type=int, default=2000, help="rows of each domain besides the test rows")
    parser.add_argument("--test", type=int, default=300, help="test rows of each domain, at most")
    parser.add_argument("--teacher", default="bge-small")
    parser.add_argument("--variants", default="teacher;ranking", type=lambda text: text.split(";"))
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16", help="of training")
    arguments = parser.parse_args(given)
    arguments.output = arguments.output.absolute()
    run_all([Domain(name, arguments) for name in arguments.sets.split(",")], arguments.output, table)


if __name__ == "__main__":
    main()
