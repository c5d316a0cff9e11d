"""Does what is measured without labels say what labels say? Rank correlations over models, on labelled domains.

    sentloom models get smollm2 reranker bge-small
    python -m benchmarks.panel_correlation DATA [-o out/panel] [--domains quora,captions,...] [--writer smollm2]
                                                [--cross-encoder reranker]

DATA is a data folder (sts/, glue/, pairs/, qa/, sts_multi/, nli/). On each of five domains, four of which the embedded
encoder was not trained on, 18 models are scored twice: by label-free measures on 150 of the domain's sentences, and by
the labels of other sentences. Seven of the models are made worse on purpose or lose the base's pooling; the others are
the base and short trainings such as `fit` tries. The measures are the panel, geometry, and those of `panel_candidates`.
Means over domains have 95% intervals (Student's t over domains). What is trained, written and measured is cached under
OUT by a hash of its content, so a run that was killed resumes. OUT/panel.md and OUT/panel.json have the tables. About
30 minutes of one core; 5 GB of models stay in OUT.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

from benchmarks import panel_candidates
from benchmarks.panel_domains import CHOSEN, DOMAINS
from benchmarks.panel_models import BASE, DOCSTRINGS, NLI, load, models
from benchmarks.panel_tables import report
from sentloom import read
from sentloom.data.corpus.opening import open_data
from sentloom.engine.artifacts import content_key
from sentloom.evaluation.bench import distinct, score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.geometry import effective_rank, mean_cosine, uniformity
from sentloom.files import new_file
from sentloom.fitting.panel import panel
from sentloom.search.cross_encoder import CrossEncoder, pair_scores

REVISION = 1  # raised when measurements would come out otherwise
CORPUS, ASKED = 400, 50  # texts that queries search; held-out sentences that a query is written for


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


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/panel"))
    parser.add_argument("--domains", default=CHOSEN, help=f"some of {', '.join(DOMAINS)}")
    parser.add_argument("--writer", default="smollm2", help="of queries; none: without them")
    parser.add_argument("--cross-encoder", default="reranker", help="none: without it")
    arguments = parser.parse_args(given)
    out, began = arguments.out, time.monotonic()
    nli = read(arguments.data / "nli/triplets.en.tsv")
    shared = [(NLI, nli), (DOCSTRINGS, open_data("embedded/pairs:numpy,torch"))]
    results = {}
    for name in arguments.domains.split(","):
        one = DOMAINS[name](arguments.data)
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
