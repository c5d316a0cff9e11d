"""The tasks of held-out rows: what validation and test rows ask, and the candidates that their queries search.

Raw text has no labels: it is judged by the label-free panel, whose tasks are built from sentences and views of them.
What a task is worth was measured on five labelled domains with 18 models each (docs/panel.md,
benchmarks/panel_correlation.py): the two tasks that agree with labels make up the panel, and `CAUTION` says how far to
trust it. The panel may reject a model, but never accepts one.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from sentloom.data.columns import text_column
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.nli import pairs_from_nli, triplets_from_nli
from sentloom.data.shapes import COLUMNS, Shape, text_columns
from sentloom.errors import InputError
from sentloom.evaluation.metrics import Ranks, mrr_at, recall_at
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.task import CLUSTER, Lookup, Score, Scores, Task
from sentloom.evaluation.user_tasks import Corpus, data_task, known_labels_task
from sentloom.fitting.evaluation_sets import NAME as GENERAL
from sentloom.fitting.inputs import FitInput, is_graded
from sentloom.fitting.request import Budget, Request
from sentloom.fitting.split import Split
from sentloom.fitting.training_sets import high_pairs
from sentloom.writing.views.pairs import seed_for

Side = Literal["validation", "test"]
SEARCHING = (Shape.PAIRS, Shape.TRIPLETS, Shape.PARALLEL)  # shapes whose rows are queries and what they should find

PANEL_TEXTS = 600  # held-out sentences that the label-free panel uses
FEWEST_ITEMS = 10  # per task: fewer show nothing
SAMPLED_PAIRS = 300  # related pairs for the plots
PROBE = {"preset": "fast"}  # the classifier on the vectors of labelled rows
TRIPLETS = "triplet accuracy"  # a score that triplets have besides those of search
LABELS = {  # of tasks with a name of their own
    GENERAL: "a paraphrase ranks closer than a near miss",
    "halves": "the first half of a sentence finds the second",
    "few-words": "a few words of a sentence find it",
}

SEED = 0  # of the sample of candidates
VERIFY_SHARE = 0.15  # of a time budget, for the base and the winner on the test rows
SELECT_SHARE = 0.2  # of a time budget, for all runs on the validation rows
EXPECTED_RUNS = 10  # that are scored on the validation rows, with merged ones
MOST_CANDIDATES = 50_000  # with a budget in steps, which depends on no clock
# Training rows among which labelled texts look for neighbours: the second number whatever the budget.
MOST_LABELLED, FEWEST_LABELLED = 20_000, 1_000

# The label-free panel. Mean rank correlation with labels over five domains: 0.52 and 0.57 for all models, 0.06 and 0.14
# for those near the base.
PANEL = (HALVES, FEW_WORDS) = ("halves", "few-words")
NO_LABELS = "No labels decided this"
CAUTION = (
    "the label-free panel tells degraded models from sound ones, but near the base it was on the right side for 58% of "
    "the models on five labelled domains (25% to 91%). So it may reject a model, and never accepts one"
)
SOURCE = "held-out text"
K = 10
CHANCE = 0.01  # below this p-value it is not chance
FEWEST_WORDS, FEWEST_CHARACTERS = 6, 12  # of a sentence that is cut in two; characters for scripts without spaces
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # Thai to Han
DRAWS = 4  # of a few words per sentence: more of them make the score steadier, at little cost


@dataclass(frozen=True)
class HeldOut:
    """The validation or test rows of one input: the tasks they are scored by, and pairs that belong together."""

    name: str
    data: Dataset
    tasks: tuple[Task, ...]
    related: tuple[tuple[str, str], ...]
    probe: Task | None = None  # a classifier trained on the training rows: of labelled test rows, and decides nothing

    @property
    def labelled(self) -> bool:
        """Whether people said what belongs together; raw text is judged by views of itself."""
        return self.data.shape is not Shape.TEXTS


def held_out_tasks(
    inputs: Sequence[FitInput], splits: Sequence[Split], side: Side, more: Sequence[str], most: int
) -> tuple[HeldOut, ...]:
    """The tasks of each input. If some inputs have labels, raw text is left out: it would cost time and say less.

    `more` are texts to search besides those of the inputs, and `most` is how many are searched at most.
    """
    labelled = any(fit_input.data.shape is not Shape.TEXTS for fit_input in inputs)
    parts = []
    for fit_input, split in zip(inputs, splits, strict=True):
        if not labelled or fit_input.data.shape is not Shape.TEXTS:
            refuse_one_value(fit_input.name, getattr(split, side))
            parts.append(held_out_part(fit_input.name, split, side, more, most))
            refuse_few_items(parts[-1])
    return tuple(parts)


def held_out_part(name: str, split: Split, side: Side, more: Sequence[str], most: int) -> HeldOut:
    """The tasks of one side of an input, whose queries search its candidates, or its training rows for a label."""
    data: Dataset = getattr(split, side)
    searching = data.shape in SEARCHING or is_graded(data)
    corpus = corpus_of(split, more, most) if searching else labelled_rows(split, most)
    part = held_out(name, data, corpus)
    if side == "test" and corpus and data.shape is Shape.CLASSIFICATION:
        return replace(part, probe=known_labels_task(name, data, PROBE, corpus))
    if searching and data.shape is not Shape.PARALLEL:
        return _of_documents(part, len(candidate_texts(split, more)))
    return part


def _of_documents(part: HeldOut, count: int) -> HeldOut:
    """Record how many candidates there are, of which the task may search a sample."""
    (task,) = part.tasks
    return replace(part, tasks=(replace(task, settings={**task.settings, "of_documents": count}),))


def held_out(name: str, data: Dataset, corpus: Corpus | None = None) -> HeldOut:
    """The tasks of some rows: NLI is asked as triplets, triplets search, raw text is judged by the label-free panel."""
    if data.shape is Shape.TEXTS:
        texts = data.column("text").to_pylist()[:PANEL_TEXTS]
        clusters = data.column(CLUSTER).to_pylist() if CLUSTER in data.table.column_names else []
        known = dict(zip(texts, clusters, strict=False))
        tasks = tuple(task for task in panel(texts, known) if item_count(task) >= FEWEST_ITEMS)
        views = tuple((text, view) for text in texts if (view := without_some_words(text)) != text)
        return HeldOut(name, data, tasks, views[:SAMPLED_PAIRS])
    asked = triplets_from_nli(data) if data.shape is Shape.NLI else data
    kind = "retrieval" if is_graded(data) or data.shape is Shape.TRIPLETS else None
    task = data_task(kind, name, name, asked, PROBE, corpus)
    task = _with_triplets(task, data) if data.shape is Shape.TRIPLETS and any(data["negatives"]) else task
    return HeldOut(name, data, (task,), tuple(_related(data)[:SAMPLED_PAIRS]))


def _with_triplets(task: Task, data: Dataset) -> Task:
    """A search task that also says how often the positive is closer than the row's own negatives."""
    own = data_task(None, task.name, task.name, data, None)
    settings = {**task.settings, TRIPLETS: own.sha256}
    return replace(
        task, score=lambda lookup: {**task.score(lookup), TRIPLETS: own.score(lookup)[own.main]}, settings=settings
    )


def _related(data: Dataset) -> list[tuple[str, str]]:
    """Pairs that mean much the same according to the labels; none if the labels say nothing about pairs."""
    if data.shape is Shape.NLI:
        data = pairs_from_nli(data)
    if data.shape is Shape.SCORED_PAIRS:
        data = high_pairs(data)
    if data.shape is Shape.CLASSIFICATION:
        return []
    left, right = (data.column(name).to_pylist() for name in COLUMNS[data.shape][:2])
    return list(zip(left, right, strict=True))


def item_count(task: Task) -> int:
    """How many items a task asks, as far as that is known before it is scored."""
    if task.settings.get("task") == "correlation":
        return len(task.texts["symmetric"]) // 2  # pairs
    items: int = task.settings.get("items", len(task.items))
    return items


def refuse_few_items(part: HeldOut) -> None:
    """Refuse held-out rows that are too few to tell a better model from a worse one."""
    items = min(map(item_count, part.tasks), default=0)
    if not part.tasks:
        problem, expected = (
            "the texts are too short to be judged without labels",
            "sentences, most of six words or more",
        )
        fix = "give longer texts, pairs or labels"
    elif items < FEWEST_ITEMS and part.tasks[0].known:
        problem = f"only {items} held-out rows have a label that training rows have"
        expected = f"at least {FEWEST_ITEMS}: labels that occur in two rows or more"
        fix = "give more rows per label, or coarser labels"
    elif items < FEWEST_ITEMS:
        problem, expected = f"the held-out rows ask only {items} different things", f"at least {FEWEST_ITEMS}"
        fix = "give more rows, above all with other texts on the first side"
    else:
        return
    raise InputError(part.name, problem, expected, fix)


def refuse_one_value(name: str, data: Dataset) -> None:
    """Refuse held-out rows that all have one label or one score."""
    column = {Shape.SCORED_PAIRS: "score", Shape.CLASSIFICATION: "label"}.get(data.shape)
    values = pc.unique(data.column(column)).to_pylist() if column else []
    if len(values) == 1:
        problem = f"the held-out rows all have the {data.own_name(str(column))} {values[0]}"
        raise InputError(name, problem, "at least two different ones", "give more rows, above all of the rarer kinds")


def task_labels(tasks: Sequence[Task]) -> list[str]:
    """What each task asks, in plain words; with the name of its file if there are several."""
    if len(tasks) == 1:
        return [task_label(tasks[0])]
    return [task_label(task) + ("" if task.name in LABELS else f" ({Path(task.name).name})") for task in tasks]


def task_label(task: Task) -> str:
    """What a task asks, in plain words."""
    if task.name in LABELS:
        return LABELS[task.name]
    counts = {role: len(texts) for role, texts in task.texts.items()}
    match task.settings.get("task"):
        case "search":
            return f"a query finds its answers among {counts['document']:,}"
        case "triplets":
            return "the positive ranks closer than the negative"
        case "translation":
            return f"a sentence finds its translation among {counts['symmetric'] // 2:,}, in both directions"
        case "correlation":
            return "similarity agrees with people's scores"
        case "classification":
            return "a simple classifier on the vectors finds the label"
        case "neighbours":
            return "the nearest training row has the same label"
        case _:
            return task.main


@dataclass(frozen=True)
class Candidates:
    """How many candidates the validation and the test rows search at most, besides the held-out ones."""

    validation: int = MOST_CANDIDATES
    test: int = MOST_CANDIDATES


def affordable_candidates(seconds_per_text: float, budget: Budget) -> Candidates:
    """As many candidates as the budget has time for."""
    if budget.seconds is None:
        return Candidates()
    selecting, verifying = SELECT_SHARE * budget.seconds, VERIFY_SHARE * budget.seconds
    return Candidates(int(selecting / (EXPECTED_RUNS * seconds_per_text)), int(verifying / (2 * seconds_per_text)))


def evenly_cut(counts: Sequence[int], most: int) -> int:
    """The largest number to which counts are cut so that their sum is at most `most`; 0 if there is none."""
    for left, count in zip(range(len(counts), 0, -1), sorted(counts), strict=True):
        if left * count > most:
            return max(0, most // left)
        most -= count
    return max(counts)


def read_corpus(request: Request) -> tuple[str, ...]:
    """The texts of the files that the user names to search among (`--corpus`), each once."""
    texts: dict[str, None] = {}
    for name in request.corpus:
        data = open_data(name)
        column = text_columns(data.shape)[1] if data.shape in SEARCHING else text_column(data, None)
        texts.update(dict.fromkeys(data.column(column).to_pylist()))
    return tuple(texts)


def candidate_texts(split: Split, more: Sequence[str]) -> list[str]:
    """All distinct candidates of an input, the held-out ones first."""
    parts = (split.validation, split.test, split.dropped, split.train)
    return list(dict.fromkeys([*chain(*map(_candidates, parts)), *more]))


def corpus_of(split: Split, more: Sequence[str], most: int) -> Corpus:
    """What the held-out rows of an input search besides their own candidates."""
    held_out = (split.validation, split.test, split.dropped)  # dropped rows share sentences with held-out ones
    if split.train.shape is Shape.PARALLEL:
        return Corpus((*held_out, _sampled_rows(split.train, most)))
    known = set(chain(*map(_candidates, held_out)))
    others = [text for text in dict.fromkeys([*_candidates(split.train), *more]) if text not in known]
    return Corpus(held_out, tuple(others[at] for at in _sample(len(others), most - len(known))))


def labelled_rows(split: Split, most: int) -> Corpus | None:
    """The training rows among which labelled texts look for neighbours; None for other shapes.

    If there is no time for all of them, every held-out label that training rows have is kept: one row each, then a
    sample of the others.
    """
    if split.train.shape is not Shape.CLASSIFICATION:
        return None
    most = min(MOST_LABELLED, max(FEWEST_LABELLED, most))
    labels = split.train.column("label").to_pylist()
    asked = {label for part in (split.validation, split.test) for label in part.column("label").to_pylist()}
    drawn = np.random.default_rng(SEED).permutation(len(labels)).tolist()
    first = {labels[at]: at for at in reversed(drawn) if labels[at] in asked}  # of each label, the first drawn
    kept = [*dict.fromkeys([*sorted(first.values()), *drawn])][:most]
    keep = np.zeros(len(labels), bool)
    keep[kept] = True
    return Corpus((split.train.select(keep),))


def _candidates(data: Dataset) -> list[str]:
    """The texts that queries may find: the second column, and hard negatives."""
    texts: list[str] = data.column(COLUMNS[data.shape][1]).to_pylist()
    return [*texts, *chain(*data.column("negatives").to_pylist())] if data.shape is Shape.TRIPLETS else texts


def _sampled_rows(data: Dataset, most: int) -> Dataset:
    keep = np.zeros(len(data), bool)
    keep[_sample(len(data), most)] = True
    return data.select(keep)


def _sample(size: int, most: int) -> list[int]:
    """At most `most` numbers below `size`, in order."""
    if size <= most:
        return list(range(size))
    return sorted(np.random.default_rng(SEED).permutation(size)[: max(0, most)].tolist())


def panel(texts: Sequence[str], clusters: Mapping[str, int] | None = None) -> list[Task]:
    """The tasks of the panel for held-out sentences; a task without a single query is left out.

    Both tasks ask about the same sentences, so a sentence is the same cluster in both; `clusters` joins some of them.
    """
    known = clusters or {}
    sentences = list(distinct_texts(texts).values())
    numbers = {text: known.get(text, number) for number, text in enumerate(sentences)}
    views = [few_words(text) for text in sentences]
    tasks = [halves_task(sentences, numbers), view_task(FEW_WORDS, sentences, views, numbers)]
    return [task for task in tasks if any(task.texts.values())]


def halves_task(texts: Sequence[str], clusters: Mapping[str, int] | None = None) -> Task:
    """The first half of a sentence looks for the second among all second halves."""
    cut = [(text, *pair) for text in texts for pair in halves([text])]
    pairs = [(text, first, second) for text, first, second in cut if text_key(first) != text_key(second)]
    documents = distinct_texts([second for _, _, second in pairs])
    place = {key: number for number, key in enumerate(documents)}
    right: dict[str, set[int]] = {}
    owner: dict[str, str] = {}
    for text, first, second in pairs:
        right.setdefault(first, set()).add(place[text_key(second)])
        owner.setdefault(first, text)
    return _finding_task(HALVES, {owner[first]: [first] for first in right}, right, list(documents.values()), clusters)


def view_task(
    name: str, texts: Sequence[str], views: Sequence[Sequence[str]], clusters: Mapping[str, int] | None = None
) -> Task:
    """The views of each text look for it among all texts, which are distinct.

    For a view that two texts share, or that is another text itself, either is right. A view that is empty or its own
    text is not asked.
    """
    place = {text_key(text): number for number, text in enumerate(texts)}
    right: dict[str, set[int]] = {}
    asked = {}
    for number, (text, own_views) in enumerate(zip(texts, views, strict=True)):
        asked[text] = [view for view in own_views if view and text_key(view) != text_key(text)]
        for view in asked[text]:
            right.setdefault(view, {place.get(text_key(view), number)}).add(number)
    queries = {text: own_views for text, own_views in asked.items() if own_views}
    return _finding_task(name, queries, right, texts, clusters)


def _finding_task(
    name: str,
    asked: Mapping[str, Sequence[str]],
    right: Mapping[str, set[int]],
    documents: Sequence[str],
    clusters: Mapping[str, int] | None,
) -> Task:
    """An item is a sentence, scored by the mean over its queries: `mrr@10`, `recall@1` and `recall@10`.

    `asked` has the queries of each sentence, and `right` the numbers of the right documents of each query; ties count
    against the model.
    """
    queries = list(right)
    row = {query: number for number, query in enumerate(queries)}
    numbers = None if clusters is None else np.array([clusters[text] for text in asked], np.int64)

    def score(lookup: Lookup) -> Scores:
        ranks = ranks_of(lookup(queries), lookup(documents), list(right.values()))

        def items(metric: Callable[[Ranks], float]) -> Score:
            values = [metric([query_ranks]) for query_ranks in ranks]
            means = [[fmean(values[row[query]] for query in own_queries)] for own_queries in asked.values()]
            return Score("mean", np.array(means), clusters=numbers)

        return {
            "mrr@10": items(partial(mrr_at, K)),
            "recall@1": items(partial(recall_at, 1)),
            "recall@10": items(partial(recall_at, K)),
        }

    settings = {"task": "finding", "k": K, "items": len(asked), "documents": len(documents)}
    content = [
        *(list(asked.values()), {query: sorted(places) for query, places in right.items()}, documents),
        None if numbers is None else numbers.tolist(),
    ]
    digest = hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
    needed = [*queries, *documents] if queries else []
    items = tuple((" / ".join(own_queries), text) for text, own_queries in asked.items())
    return Task(name, "mrr@10", {"symmetric": needed}, score, SOURCE, digest, settings, items=items)


def is_at_chance(score: Score, documents: int) -> bool:
    """Whether a `recall@10` is no better than ten documents drawn at random, by an exact binomial test.

    For the task `halves` this means that the text is not prose to the model: nothing connects the halves of a sentence.
    """
    from scipy.stats import binomtest

    hits, queries = int(score.items.sum()), len(score.items)
    return bool(binomtest(hits, queries, min(1.0, K / documents), alternative="greater").pvalue >= CHANCE)


def halves(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The two halves of each sentence that is long enough, cut after the middle word or the middle character."""
    pairs = []
    for text in texts:
        units, between = _units(text)
        if len(units) >= (FEWEST_WORDS if between else FEWEST_CHARACTERS):
            middle = (len(units) + 1) // 2
            pairs.append((between.join(units[:middle]), between.join(units[middle:])))
    return pairs


def few_words(text: str) -> list[str]:
    """A third of the text's words, drawn several times; none for texts of fewer than six words."""
    units, between = _units(text)
    enough = len(units) >= (FEWEST_WORDS if between else FEWEST_CHARACTERS)
    drawn = (without_some_words(text, 2 / 3, draw) for draw in range(DRAWS))
    return list(dict.fromkeys(drawn)) if enough else []


def without_some_words(text: str, share: float = 1 / 3, draw: int = 0) -> str:
    """The text without a share of its words, which depends only on text and draw; at least one word remains."""
    units, between = _units(text)
    by_chance = sorted(range(len(units)), key=lambda place: seed_for(draw * len(units) + place, text))
    gone = set(by_chance[: min(round(share * len(units)), len(units) - 1)])
    return between.join(unit for place, unit in enumerate(units) if place not in gone)


def text_key(text: str) -> str:
    """The text without differences in case and spaces."""
    return " ".join(text.casefold().split())


def distinct_texts(texts: Sequence[str]) -> dict[str, str]:
    """The texts that differ in more than case and spaces, the first of each, by key."""
    known: dict[str, str] = {}
    for text in texts:
        known.setdefault(text_key(text), text)
    return known


def _units(text: str) -> tuple[list[str], str]:
    """The words of a text and their separator; its characters if the script does not separate words."""
    words = text.split()
    unspaced = 2 * len(UNSPACED.findall(text)) > len("".join(words))
    return (list("".join(words)), "") if unspaced else (words, " ")
