"""Numbers and facts of a fit as text: the same on the page, in Markdown, on the model card and in the terminal."""

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from sentloom import progress
from sentloom.data.hygiene.languages import NAMES, recognised
from sentloom.evaluation.significance import LEAST_P
from sentloom.fitting.gate import EQUIVALENT, power_line
from sentloom.fitting.measures import Measure, metric_name, rounded_down
from sentloom.fitting.result import Addition, FitResult, InputSummary, Run, Ticks
from sentloom.fitting.system import system_of

HEADLINES = {
    "better": "Better than its base",
    "closer": "Closer to its teacher than its base; whether it is of more use was not tested",
    "no difference shown": "No difference shown",
    "worse": "Worse than its base",
}
PARTS = {"deciding": "Decides", "general": "General ability", "watched": "For information only"}
MEANINGS = {  # of scores, for readers who do not know them
    "ndcg@10": "how high the right answers rank among the first ten, 100 if they come first",
    "mrr@10": "one over the rank of the first right answer, 0 beyond the tenth",
    "map": "how high all rows with the same label, or all right answers, rank on average",
    "triplet accuracy": "the share of rows whose positive is closer than each of their own negatives",
    "preference": "the share of all queries for which people prefer this model's first result to the other's",
    "overlap@10": "the share of the ten nearest texts that model and teacher have in common",
    "rank correlation": "how alike model and teacher rank all texts by similarity, on average",
    "probe": "a linear classifier is trained on the vectors of the training rows and finds the labels of the test rows",
}
PANEL = (
    "the label-free panel tells degraded models from sound ones, but near the base it was on the right side for 58% of "
    "the models on five labelled domains (25% to 91%). So it may reject a model, and never accepts one."
)
NONE = "–"
MINUS = "\N{MINUS SIGN}"


def headline(result: FitResult) -> str:
    """The verdict, and whether the model was written in spite of it."""
    words = HEADLINES[result.verdict].replace("its base", "the best base" if len(result.bases) > 1 else "its base")
    if result.verdict in ("better", "closer"):
        return words
    return f"{words}: {_written(result)}"


def _written(result: FitResult) -> str:
    """What was written although the encoder is not shown to be better."""
    if result.forced:
        return "written anyway (--force)"
    if not result.classifiers:
        return "no model was written"
    fitted = result.classifiers[0].fitted
    return "written for its classifier, which is better" if fitted else "the base was written, with a classifier"


def unit(measure: Measure) -> str:
    """What a score is and between which numbers it lies, as in "nDCG@10, 0 to 100"."""
    return f"{metric_name(measure.metric)}, {f'{MINUS}100' if measure.metric == 'spearman' else '0'} to 100"


def caution(result: FitResult) -> str:
    """What whoever uses a model that is not shown to be better must know; empty for one that is."""
    if not result.model or not (result.forced or result.verdict == "closer"):
        return ""
    if result.verdict == "closer":
        tick = shlex.join(["sentloom", "tick", f"{Path(result.model).absolute()}.fit"])
        return f"Agreement with the teacher was tested, usefulness was not: `{tick}` lets you judge. To use it:"
    shown = "is worse than its base" if result.verdict == "worse" else "is not shown to be better than its base"
    return f"This model {shown}, and was written only because of --force. To try it nevertheless:"


def warnings(result: FitResult) -> list[str]:
    """Everything to be wary of, one or two sentences each."""
    blind = result.decided_without_labels and result.verdict != "closer"
    return [*result.warnings, *([f"No labels decided this: {PANEL}"] if blind else [])]


def next_steps(result: FitResult) -> dict[str, str]:
    """What to do with the model that was written, as commands that work from any folder."""
    if not result.model:
        return {}
    model = str(Path(result.model).absolute())
    commands = {
        **({"Label a file with it": ["predict", model, "new.csv", "-o", "labelled.csv"]} if result.classifiers else {}),
        "Search your texts with it": ["search", model],
        "Serve it, with a page to search on": ["serve", model, "--corpus", f"{model}.fit/corpus.parquet"],
        "Write it for ONNX Runtime": ["export", model, "--to", "onnx", "-o", f"{model}-onnx"],
    }
    return {what: shlex.join(["sentloom", *parts]) for what, parts in commands.items()}


def glossary(result: FitResult) -> dict[str, str]:
    """What the scores that appear mean, by their names."""
    shown = [name for measure in result.measures for name in (measure.metric, *measure.also)]
    return {metric_name(name): MEANINGS[name] for name in dict.fromkeys(shown) if name in MEANINGS}


def number(value: float | None, digits: int = 2) -> str:
    """As in 61.20, or a dash if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:z,.{digits}f}".replace("-", MINUS)


def signed(value: float | None) -> str:
    """As in +13.33."""
    text = number(value)
    return f"+{text}" if value is not None and value > 0 and text not in ("0.00", NONE) else text


def interval_text(low: float | None, high: float | None) -> str:
    """As in "11.80 to 14.91"."""
    return f"{number(low)} to {number(high)}"


def change_text(change: Measure | Run) -> str:
    """A difference and its interval, as in "+11.90 (10.60 to 13.20)"."""
    interval = "" if change.low is None else f" ({interval_text(change.low, change.high)})"
    return f"{signed(change.difference)}{interval}"


def chance(p: float) -> str:
    """As in "p = 0.012", or "p < 0.001" for anything smaller, where the tails of a distribution are not known."""
    return f"p < {LEAST_P}" if p < LEAST_P else f"p = {p:.3f}"


def language(source: InputSummary) -> str:
    """As in "English", "English 65%, German 35%" for mixed texts, or "unknown"."""
    if len(known := recognised(source.languages)) > 1:
        return ", ".join(f"{NAMES.get(code, code)} {share:.0%}" for code, share in source.languages.items())
    code = next(iter(known), source.language)
    return NAMES.get(code, code) if code else "unknown"


def stability(result: FitResult) -> str:
    """How far two seeds agree; empty if that was not measured."""
    if (seeds := result.stability) is None:
        return ""
    return (
        f"Stability: two seeds of the best route agree on {number(seeds.share, 1)}% of the {seeds.neighbours} nearest "
        f"neighbours of {seeds.texts:,} held-out texts (95% interval {number(seeds.low, 1)}% to "
        f"{number(seeds.high, 1)}%). This is for information only and does not affect the verdict."
    )


def evidence(result: FitResult) -> list[str]:
    """What the verdict rests on: clusters, what queries search, power, uses of the test rows. One sentence each."""
    lines = [*_clusters(result), *_searched(result), *_power(result), *([result.believe] if result.believe else [])]
    lines += [*_uses(result), *(f"{line}." for line in result.cluster_notes), *_start(result), *_threshold(result)]
    lines += _system(result)
    return [*_ticks(result), *lines, *_merging(result), *(f"The time ran out: {line}." for line in result.changes)]


def _ticks(result: FitResult) -> Iterator[str]:
    if (ticks := result.ticks) is None:
        return
    people = "One person" if ticks.people == 1 else f"{ticks.people} people"
    rests = f"; the verdict rests on the first {ticks.used:,}" if ticks.used and result.label_free else ""
    yield (
        f"{people} compared the first results of base and model, without knowing whose they are, for "
        f"{ticks.answered:,} of the {ticks.different:,} held-out queries for which they differ, of {ticks.queries:,} "
        f"in all{rests}."
    )
    if line := agreement_line(ticks):
        yield line


def agreement_line(ticks: Ticks) -> str:
    """How far people agree; empty if one person answered, or nobody the same queries as another."""
    if (agreement := ticks.agreement) is None:
        return ""
    kappa = "" if agreement.kappa is None else f", Cohen's kappa {number(agreement.kappa)}"
    return (
        f"{ticks.people} people agree on {number(agreement.share, 0)}% of the {agreement.queries:,} queries that more "
        f"than one of them answered (95% interval {number(agreement.low, 0)}% to {number(agreement.high, 0)}%{kappa})."
    )


def _system(result: FitResult) -> Iterator[str]:
    """What each part of the search adds, and what the search is."""
    if (proven := result.system) is None:
        return
    yield f"The search of this model is by {system_of(proven)}." if result.model else "Of a search with the base:"
    yield _addition(f"Words beside vectors (BM25{', ' + proven.stemming if proven.stemming else ''})", proven.fusion)
    if proven.reranking:
        yield _addition(f"The re-ranker {proven.reranker} on the first {proven.depth} results", proven.reranking)


def _addition(part: str, added: Addition) -> str:
    if added.total is None:
        return f"{part}: the validation rows chose the weight 0, so nothing was tested."
    total = added.total
    scores = f"{number(total.before)} before, {number(total.after)} after, {change_text(total)}"
    kept = "It is part of the search." if added.weight else "It is not shown to be better, so its weight is 0."
    return f"{part}, with the weight {added.chosen:g}: {metric_name(total.metric)} {scores}. {kept}"


def _merging(result: FitResult) -> Iterator[str]:
    if merging := result.merging:
        chosen = "was preferred" if merging.chosen else "was not better"
        if merging.chosen and merging.merged < merging.tuned:
            chosen += " in a tie, because it is closer to the base"
        general = (merging.general_before, merging.general_tuned, merging.general_merged)
        yield (
            f"The best merged model ({merging.route}) {chosen}: {number(merging.merged)} on {result.chosen_on}, "
            f"{number(merging.tuned)} before merging. General ability ({merging.general}): "
            f"{', '.join(map(number, general))} for base, trained and merged model."
        )


def _clusters(result: FitResult) -> Iterator[str]:
    if (total := result.total) and total.clusters:
        effective = f", an effective number of {rounded_down(total.effective)}" if total.effective else ""
        yield (
            f"{total.items:,} test items in {total.clusters:,} clusters{effective}: rows that share a text, nearly "
            "repeat each other or are in one group count together, and intervals are over clusters."
        )


def _searched(result: FitResult) -> Iterator[str]:
    for measure in result.measures:
        if measure.documents and measure.of_documents and measure.part == "deciding":
            among = f"a sample of {measure.documents:,} of" if measure.documents < measure.of_documents else "all"
            candidates = f"{among} {measure.of_documents:,} candidates"
            yield f"{measure.name}: queries search {candidates}, the same for base and model."


def _power(result: FitResult) -> Iterator[str]:
    if (power := result.power) and power.gain is not None:
        yield (
            f"These test rows have {power.probability:.0%} power to detect a gain of {number(power.gain, 1)} points, "
            f"assuming that base and fitted model correlate at {power.correlation:g} over clusters."
        )
    elif power:
        line = power_line(power)
        yield f"{line[:1].upper()}{line[1:]}."
    if result.total and result.total.equivalent:
        yield f"The difference is shown to be less than {EQUIVALENT:g} points."


def _uses(result: FitResult) -> Iterator[str]:
    if result.uses > 1 and result.total:
        yield (
            f"This is model number {result.uses} that is tested on these rows. Enough tests show a gain "
            f"by chance, so its interval is a {level(result.total)} interval instead of a 95% one."
        )


def _threshold(result: FitResult) -> Iterator[str]:
    if (cut := result.threshold) is None:
        return
    shares = f"precision {cut.precision:.0%} and recall {cut.recall:.0%}"
    chosen = f"{shares} for the {cut.queries:,} queries of {result.chosen_on}"
    tested = "none is accepted" if cut.test_precision is None else f"{cut.test_precision:.0%} and {cut.test_recall:.0%}"
    if cut.reached:
        start = f"Accept nearest matches with a cosine of at least {number(cut.cosine)}"
        yield f"{start}: {chosen}, which it was chosen on; {tested} for test queries."
    else:
        start = f"No cosine threshold is advised: none reaches a precision of {cut.asked:.0%}"
        yield f"{start}. The best, {number(cut.cosine)}, has {chosen}; {tested} for test queries."


def _start(result: FitResult) -> Iterator[str]:
    """What is special about the base that the model started from."""
    own = next((base for base in result.bases if base.name == result.started_from), None)
    if own and own.made_for:
        yield f"Languages that the base was made for: {own.made_for}."
    if own and own.prompts:
        yield "Queries and documents have the prompts that the base was trained with, in training and in all scores."
    if own and own.adapters:
        yield (
            f"The base has {own.parameters / 1e6:,.0f} million parameters, so adapters (LoRA) were trained and "
            "then added to its weights."
        )


def level(measure: Measure) -> str:
    """The level of an interval, as in "95%"."""
    return f"{100 * measure.level:.4g}%"


def duration(cost: float | str) -> str:
    """As in 4.2 s, 48 s, 5.3 min, 12 min or 3.4 h; text stays as it is."""
    return cost if isinstance(cost, str) else progress.duration(cost)


def about_bases(result: FitResult) -> str:
    """How several bases were tried."""
    if all(base.latency is None for base in result.bases):
        return (
            "The routes started from each base, as far as there was time. The winner is compared with the base that is "
            "best on the validation rows, whichever it started from."
        )
    fast = f" of those that need at most {result.max_latency} ms for a query" if result.max_latency else ""
    if result.label_free:
        return (
            "These are the encoders of the catalogue on this machine (--base auto). No labels say which is better "
            f"here, so the one that scores best on the sets of docs/models.md{fast} was fitted."
        )
    return (
        "These are the encoders of the catalogue on this machine (--base auto). They were scored on the validation "
        f"rows before anything was trained, and the best one{fast} was fitted."
    )


def titled_parts(result: FitResult) -> dict[str, list[Measure]]:
    """Measures by the title of their part."""
    return {PARTS[part]: measures for part, measures in result.parts.items()}


def steps_in_words(steps: Sequence[int]) -> str:
    """As in "40 steps" or "40 to 62 steps"; "merged" if nothing was trained."""
    if not any(steps):
        return "merged"
    return f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"


def details(result: FitResult) -> dict[str, dict[str, str]]:
    """What the fit cost and what it was made with."""
    hashes = {source.name: source.sha256 for source in result.sources}
    return {
        "Cost": {name: duration(cost) for name, cost in result.cost.items()},
        "Versions": dict(result.versions),
        "SHA-256": {**hashes, **result.hashes},
    }
