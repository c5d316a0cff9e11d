"""The label-free panel: how raw text is judged, by tasks that are built from sentences and views of them.

What a task is worth was measured on five labelled domains with 18 models each (docs/panel.md,
benchmarks/panel_correlation.py): the two tasks that agree with labels make up the panel, and the report says how far
to trust it. The panel may reject a model, but never accepts one.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

import numpy as np

from sentloom.evaluation.metrics import Ranks, mrr_at, recall_at
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.task import Kind, Lookup, Score, Scores, Task, TaskSettings
from sentloom.writing.views.pairs import seed_for

PANEL_TEXTS = 600  # held-out sentences that it uses
# Mean rank correlation with labels over five domains: 0.52 and 0.57 for all models, 0.06 and 0.14 for those near the
# base.
PANEL = (HALVES, FEW_WORDS) = ("halves", "few-words")
SOURCE = "held-out text"
K = 10
CHANCE = 0.01  # below this p-value it is not chance
FEWEST_WORDS, FEWEST_CHARACTERS = 6, 12  # of a sentence that is cut in two; characters for scripts without spaces
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # Thai to Han
DRAWS = 4  # of a few words per sentence: more of them make the score steadier, at little cost


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

    settings = TaskSettings(Kind.FINDING, K, items=len(asked), documents=len(documents))
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
