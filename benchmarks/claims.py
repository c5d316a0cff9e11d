"""The papers' claims at small scale, each as a recipe whose variants differ in what the claim is about.

    python -m benchmarks.claims DATA [-o out/claims] [--bases embedded,bert] [--claims sg,bsl,st5,xl,gense]
                                     [--seeds 3] [--steps 200]

DATA is a data folder (docs/sets.md) with sts/*.tsv, nli/triplets.en.tsv, qa/qa_pairs.en.tsv.gz,
text/sentences.en.tsv.gz and parallel/tatoeba.en-de.tsv.gz. `bert` is a small BERT that `mlm` trains first on sentences
of DATA (once, cached in OUT/bert): a tuned encoder hides what the papers show on raw ones. Every variant trains for the
same number of steps under the same seeds and is scored on STS-B's test part, of which no sentence is trained on. Scores
are means over seeds; the difference to a claim's first variant has a 95% interval over sentence pairs, for the first
seed. OUT/table.md has the table. Finished stages and scores are reused: a run that was killed resumes.
"""

import argparse
import json
from pathlib import Path

from sentloom.encoder.building import build_model
from sentloom.evaluation.score_cache import read_scores, score_file
from sentloom.evaluation.significance import compare_averages
from sentloom.markdown import table
from sentloom.pipeline.building import stage
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.runner import prepare, start_accelerator
from sentloom.pipeline.schema import Evaluate

TEXTS, NLI = "text/sentences.en.tsv.gz", "nli/triplets.en.tsv"
SET = "sts-b"
BATCH = 32
MLM_STEPS = 4000  # about 20 minutes on one core


def self_guided(data, steps):
    """OPT3 > OPT2 > OPT1 > SG; temperature, lambda, head."""

    def learn(head_width=1024, **options):
        rows = {"data": f"{data}/{TEXTS}", "data_share": 0.1, "drop_leaks": True, "batch": 16, "steps": steps}
        by = {"preset": "paper", "pooling": "first", "head_width": head_width, **rows, **options}
        return (stage("self-guided", name="learn", **by),)

    objectives = {name: learn(objective=name) for name in ("opt3", "opt2", "opt1", "sg")}
    others = {
        "temperature 0.1": {"temperature": 0.1},
        "lambda 0": {"regularizer": 0.0},
        "lambda 1": {"regularizer": 1.0},
    }
    return {
        "untouched [CLS]": (),
        **objectives,
        **{name: learn(**by) for name, by in others.items()},
        "no head": learn(head_width=None),
    }


def bsl(data, steps):
    """Momentum, kinds of views, batch size against NT-Xent."""

    def learn(method="bootstrapped", views="synonyms", batch=BATCH, **options):
        common = {"data": f"{data}/{TEXTS}", "data_share": 0.02, "drop_leaks": True}
        made = stage("views", name="made", kind=views, **common)
        return made, stage(method, name="learn", data="stage:made", pooling="mean", batch=batch, steps=steps, **options)

    found = {f"momentum {value}": learn(momentum=value, learning_rate=5e-5) for value in (0.999, 0.5, 0.9, 1.0)}
    found["back-translation"] = learn(views="back-translation", learning_rate=5e-5)
    for batch in (16, 64):
        found[f"BSL, batch {batch}"] = learn(batch=batch, learning_rate=5e-5)
        found[f"NT-Xent, batch {batch}"] = learn("contrastive-bt", batch=batch, head_width=None, regularizer=0.0)
    return found


def sentence_t5(data, steps):
    """Poolings raw and tuned, one and two stages; on BERT first and mean stand for the poolings of an encoder."""

    def learn(pooling, *more):
        nli = stage(
            "contrastive", name="nli", data=f"{data}/{NLI}", drop_leaks=True, pooling=pooling, batch=BATCH, steps=steps
        )
        return (*more, nli)

    qa = stage(
        "contrastive",
        name="qa",
        data=f"{data}/qa/qa_pairs.en.tsv.gz",
        drop_leaks=True,
        pooling="mean",
        batch=BATCH,
        steps=steps,
    )
    return {"mean, NLI": learn("mean"), "first, NLI": learn("first"), "mean, QA then NLI": learn("mean", qa)}


def cross_lingual(data, steps):
    """Frozen > dual > one encoder; temperature, queue."""

    def learn(**options):
        common = {"data": f"{data}/parallel/tatoeba.en-de.tsv.gz", "data_share": 0.1, "drop_leaks": True}
        back = {"columns": {"source": "target", "target": "source"}, "pooling": "mean", "batch": BATCH, "steps": steps}
        return (stage("cross-lingual", name="back", **common, **back, **options),)

    frozen = learn(source="embedded", queue=0)
    return {
        "frozen": frozen,
        "dual": learn(source="embedded", queue=0, source_encoder="trained"),
        "one encoder": learn(queue=0, source_encoder="shared"),
        "temperature 0.05": learn(source="embedded", queue=0, temperature=0.05, learn_temperature=False),
        "queue 1,024": learn(source="embedded", queue=1024),
    }


def gense(data, steps):
    """Synthetic data before NLI: its amount, without negatives, half of NLI; by the embedded writer."""

    def learn(share=0.0, nli=1.0, **options):
        rows = {"data": f"{data}/{NLI}", "data_share": nli, "drop_leaks": True, "batch": BATCH, "steps": steps}
        last = stage("contrastive", name="nli", pooling="mean", **rows)
        if not share:
            return (last,)
        raw = {"data": f"{data}/{TEXTS}", "data_share": 0.02, "drop_leaks": True}
        written = stage("synthesize", name="written", model="embedded", rows=2000, threshold=0.5, **raw)
        by = {
            "data": "stage:written",
            "data_share": share,
            "drop_leaks": True,
            "batch": BATCH,
            "steps": steps,
            **options,
        }
        return written, stage("contrastive", name="synthetic", pooling="mean", **by), last

    return {
        "NLI alone": learn(),
        "20% synthetic": learn(0.2),
        "100% synthetic": learn(1.0),
        "100%, no negatives": learn(1.0, negatives=0),
        "half of NLI": learn(nli=0.5),
        "100% synthetic, half of NLI": learn(1.0, nli=0.5),
    }


CLAIMS = {"sg": self_guided, "bsl": bsl, "st5": sentence_t5, "xl": cross_lingual, "gense": gense}


def small_bert(data, folder, accelerator):
    """A BERT that has learned to fill in masks on sentences of DATA; cached."""
    start = folder / "bert" / "random"
    if not start.is_dir():
        from sentloom.data.readers import read

        texts = (text for _, _, text in read(f"{data}/{TEXTS}").sentences())
        build_model(start, "bert", texts, vocabulary=8000, layers=6, width=256)
    learn = stage("mlm", name="mlm", data=f"{data}/{TEXTS}", batch=64, steps=MLM_STEPS)
    (runner,) = prepare([Plan("bert", base=str(start), stages=(learn,))], folder / "bert", accelerator, print)
    (result,) = runner.run()
    return str(result.model)


def scored(runner, result):
    """The items of a model's score on the set, from the cache of the run."""
    (one,) = runner.evaluation_sets
    model = runner.artifacts[runner.plan.stages[-1].name].fingerprint if runner.plan.stages else runner.base_fingerprint
    scores = read_scores(score_file(runner.folder / "scores", model, one.task))
    assert scores is not None, result.plan
    return scores[one.task.main]


def lines(base, claim, variants, given, folder, accelerator):
    """A line per variant: its score over seeds, and the difference from the first with its interval."""
    evaluate = Evaluate(sets=(SET,), data=str(given.data))
    plans = [
        Plan(name, base=base, stages=stages, evaluate=evaluate, seeds=tuple(range(1, given.seeds + 1)), pooling="first")
        for name, stages in variants.items()
    ]
    reference, found = None, []
    for runner in prepare(plans, folder, accelerator, print):
        results = [
            (one, scored(runner, one))
            for one in map(runner.run_seed, runner.plan.seeds if runner.plan.stages else (1,))
        ]
        mean = sum(one.after[SET] for one, _ in results) / len(results)
        scores = [score for _, score in results]
        reference = reference or scores
        away = compare_averages([scores[0]], [reference[0]]) if scores is not reference else None
        said = f"{away.difference:+.2f} ({away.low:+.2f} to {away.high:+.2f})" if away else ""
        found.append((claim, runner.plan.name, f"{mean:.2f}", said))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/claims"))
    parser.add_argument("--bases", default="embedded,bert")
    parser.add_argument("--claims", default=",".join(CLAIMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    given.data = given.data.absolute()
    accelerator = start_accelerator((), given.output)
    parts, kept = [], {}
    for name in given.bases.split(","):
        base = small_bert(given.data, given.output, accelerator) if name == "bert" else name
        rows = []
        for claim in given.claims.split(","):
            variants = CLAIMS[claim](given.data, given.steps)
            rows += lines(base, claim, variants, given, given.output / name / claim, accelerator)
        kept[name] = rows
        parts.append(
            f"### {name}\n\n" + table(["claim", "variant", "STS-B test", "difference from the first"], rows, 2)
        )
        (given.output / "table.json").write_text(json.dumps(kept, indent=1))
        (given.output / "table.md").write_text("\n\n".join(parts) + "\n", "utf-8")
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
