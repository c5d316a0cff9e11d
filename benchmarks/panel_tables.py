"""What `panel_correlation` measured, as tables: label-free measures against labels, over models and domains."""

import numpy as np
from scipy.special import stdtrit

from benchmarks import panel_candidates
from sentloom.evaluation.metrics import spearman
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score
from sentloom.fitting.race import shared_neighbours

PANEL = "panel"
HALF_OF_THE_LABELS = "half of the labels, against the other half"


def as_score(kept):
    clusters = kept.get("clusters")
    return Score(kept["metric"], np.array(kept["items"]), clusters=None if clusters is None else np.array(clusters))


def values(found, base):
    """Every label-free measure of a model, higher better, in the order of the table."""
    gauge, scores = found["gauges"], {name: one["value"] for name, one in found["scores"].items()}
    return {
        **scores,
        PANEL: float(np.mean(list(scores.values()))),
        **{name: one["value"] for name, one in found["candidates"].items()},
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
    """Of one domain, for all models but the base: what paired intervals say by each measure, and by labels."""
    base = one["base"][0]
    tasks = all_tasks(base)
    groups = {**{task: [task] for task in tasks}, PANEL: list(base["scores"])}
    found = {}
    for name, (kept, near) in one.items():
        if name != "base":
            compare = {
                group: compared([all_tasks(kept)[task] for task in some], [all_tasks(base)[task] for task in some])
                for group, some in groups.items()
            }
            found[name] = {"near": near, "labels": compared([kept["true"]], [base["true"]]), "by": compare}
    return found


def all_tasks(found):
    return found["scores"] | found["candidates"]


def compared(a, b):
    return vars(compare_averages([as_score(one) for one in a], [as_score(one) for one in b]))


def word(comparison):
    return "better" if comparison["low"] > 0 else "worse" if comparison["high"] < 0 else "undecided"


def report(results):
    """The tables as Markdown, and everything they are made from."""
    judgements = {name: judged(one) for name, one in results.items()}
    gates = {name: verdicts(one) for name, one in results.items()}
    parts = [
        domain_table(results),
        summary_table(judgements),
        domains_table(judgements, "near", "Rank correlation with the labels, models near the base"),
        domains_table(judgements, "same sign", "Share of models on the right side of the base"),
        held_out_choice(judgements),
        gate_table(gates, True, "Paired 95% intervals against the base, models near it"),
        gate_table(gates, False, "Paired 95% intervals against the base, degraded models"),
        *(score_table(name, one) for name, one in results.items()),
    ]
    return "\n\n".join(parts) + "\n", {"measures": judgements, "verdicts": gates}


def markdown(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def domain_table(results):
    """How the base does by labels, and how many of the models near it are above it."""
    rows = []
    for name, one in results.items():
        base = one["base"][0]["true"]["value"]
        near = [found["true"]["value"] - base for model, (found, near) in one.items() if near and model != "base"]
        above = f"{sum(gain > 0 for gain in near)} of {len(near)}"
        rows.append([name, str(len(one)), f"{base:.2f}", above, f"{min(near):+.2f} to {max(near):+.2f}"])
    head = ["domain", "models", "the base by labels", "near it: truly above", "near it: gains"]
    return markdown("Domains", head, rows)


def mean_interval(cells, least=-np.inf, most=np.inf, sign=""):
    """The mean over domains with its 95% interval, which takes the domains for a sample of all there are."""
    mean, many = np.mean(cells), len(cells)
    if many < 2:
        return f"**{mean:{sign}.2f}**"
    half = stdtrit(many - 1, 0.975) * np.std(cells, ddof=1) / np.sqrt(many)
    return f"**{mean:{sign}.2f}** ({max(mean - half, least):{sign}.2f} to {min(mean + half, most):{sign}.2f})"


def all_measures(judgements):
    return list(dict.fromkeys(name for one in judgements.values() for name in one))


def summary_table(judgements):
    """Every measure, with means over domains; less than all domains where a measure does not exist on some."""
    rows = []
    for name in all_measures(judgements):
        there = [one for one in judgements.values() if name in one]
        own = {field: [one[name][field] for one in there] for field in ("all", "near", "same sign", "gain")}
        ahead = [one[name]["near"] - one[PANEL]["near"] for one in there]
        better, kept = (sum(test(gain) for gain in own["gain"]) for test in (lambda g: g > 0, lambda g: g == 0))
        intervals = [
            mean_interval(own["all"], -1, 1),
            mean_interval(own["near"], -1, 1),
            mean_interval(ahead, sign="+"),
            mean_interval(own["same sign"], 0, 1),
            mean_interval(own["gain"], sign="+"),
        ]
        rows.append([name, str(len(there)), *intervals, f"{better}, {kept}"])
    head = [
        "",
        "domains",
        "correlation, all",
        "near the base",
        "more than the panel",
        "right side",
        "gain of its choice",
    ]
    most = np.mean([one[PANEL]["greatest gain"] for one in judgements.values()])
    title = f"Measures against labels: means over domains (the best choice would gain {most:+.2f})"
    return markdown(title, [*head, "choices: better, the base"], rows)


def domains_table(judgements, field, title):
    rows = []
    for name in all_measures(judgements):
        cells = [f"{one[name][field]:.2f}" if name in one else "" for one in judgements.values()]
        rows.append([name, *cells])
    return markdown(title, ["", *judgements], rows)


def held_out_choice(judgements):
    """The measure that does best near the base on the other domains, judged on the one left out."""
    rows = []
    for left_out, one in judgements.items():
        others = [other for name, other in judgements.items() if name != left_out]
        means = {
            name: np.mean([other[name]["near"] for other in others if name in other] or [-1])
            for name in one
            if name != HALF_OF_THE_LABELS
        }
        best = max(means, key=means.get)
        rows.append([left_out, best, *(f"{one[best][field]:.2f}" for field in ("all", "near", "same sign", "gain"))])
    head = ["left out", "best elsewhere", "correlation, all", "near the base", "right side", "gain of its choice"]
    return markdown("Measures chosen on the other domains", head, rows)


def gate_table(gates, near, title):
    """What the gate would say by the paired interval of each measure, and what labels say of the same models."""
    said = [model for one in gates.values() for model in one.values() if model["near"] == near]
    rows = []
    for group in dict.fromkeys(name for model in said for name in model["by"]):
        for verdict in ("better", "undecided", "worse"):
            true = [model["labels"] for model in said if group in model["by"] and word(model["by"][group]) == verdict]
            words = [word(labels) for labels in true]
            above = sum(labels["difference"] > 0 for labels in true)
            counts = [len(true), above, *(words.count(one) for one in ("better", "undecided", "worse"))]
            rows.append([group, verdict, *map(str, counts)])
    head = ["by", "says", "models", "labels above the base", "clearly better", "undecided", "clearly worse"]
    return markdown(title, head, rows)


def score_table(domain_name, one):
    """The scores of all models of a domain."""
    names = [*one["base"][0]["scores"], *one["base"][0]["candidates"]]
    rows = [
        [
            name,
            "near" if near else "degraded",
            f"{found['true']['value']:.2f}",
            *(f"{all_tasks(found)[task]['value']:.1f}" for task in names),
        ]
        for name, (found, near) in one.items()
    ]
    return markdown(domain_name, ["model", "", "labels", *names], rows)
