"""The label-free panel: tasks that raw held-out text gives by itself, so that models can be compared without labels.

Every task is made of sentences and views of them. What a task is worth was measured on five labelled domains and 18
models each (docs/panel.md): those that go with the labels are in `PANEL`; `CAUTION` says how far to trust them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import Shape
from sentloom.errors import MissingPart
from sentloom.evaluation.metrics import Ranks, mrr_at, recall_at
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.suites.set_source import Rows
from sentloom.evaluation.suites.user_tasks import triplet_task
from sentloom.evaluation.task import Lookup, Score, Scores, Task
from sentloom.views.cache import ViewCache, find, make_missing
from sentloom.views.maker import seed_for
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation, Synonyms

# Mean rank correlation with labels over five domains: all models 0.56 and 0.56, those near the base 0.22 and 0.17.
PANEL = ("halves", "few-words")
CAUTION = (
    "without labels only a guess is possible: the panel tells spoilt models from sound ones, but near the base it was "
    "on the right side for 51% of the models on five labelled domains; of 14 that it called better, labels had 9 above "
    "the base and 4 clearly below. Give pairs or a labelled set (--against) to know"
)
SYNTHETIC = "synthetic-triplets"
SOURCE = "held-out text"
K = 10
CHANCE = 0.01  # the p below which a score is no chance
FEWEST_WORDS, FEWEST_CHARACTERS = 6, 12  # of a sentence that is cut in two; characters where words are not marked
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # Thai to Han
DRAWS = 4  # of a few words of each sentence: more of them make the score steadier, at little cost
CONTENT = re.compile(r"[^\W\d_]{4,}")  # what may be a word that carries meaning

Pair = tuple[str, str]
Triplet = tuple[str, str, str]


def panel(texts: Sequence[str], language: str | None, cache: Path, *, synthesizer: str | None = None) -> list[Task]:
    """The tasks whose scores were found to go with labels, for held-out sentences of a language (its ISO code).

    Tasks whose parts are missing, such as a translator for the language, are left out. Views are kept in `cache`.
    """
    makers = _makers(texts, language, cache, synthesizer)
    return _asking([makers[name]() for name in PANEL if name in makers])


def every_task(
    texts: Sequence[str], language: str | None, cache: Path, *, synthesizer: str | None = None
) -> list[Task]:
    """All tasks that these sentences permit, also those that left the panel."""
    return _asking([make() for make in _makers(texts, language, cache, synthesizer).values()])


def _asking(tasks: Sequence[Task]) -> list[Task]:
    """Those that ask anything."""
    return [task for task in tasks if any(task.texts.values())]


def _makers(
    texts: Sequence[str], language: str | None, cache: Path, synthesizer: str | None
) -> dict[str, Callable[[], Task]]:
    """How each task is made, by its name; nothing is made before it is called."""
    sentences = list(_distinct(texts).values())

    def of_views(name: str, views: Callable[[], Iterable[Sequence[str]]]) -> tuple[str, Callable[[], Task]]:
        return name, lambda: view_task(name, sentences, list(views()))

    def back() -> list[str]:
        return _views(BackTranslation(), sentences, cache)

    makers = [
        ("halves", lambda: halves_task(sentences)),
        of_views("words-dropped", lambda: ([without_some_words(text)] for text in sentences)),
        of_views("few-words", lambda: map(few_words, sentences)),
    ]
    if language == "en":
        makers += [
            of_views("back-translation", lambda: ([view] for view in back())),
            of_views("few-words-back", lambda: map(few_words, back())),
            ("changed-word", lambda: _triplets("changed-word", changed_words(sentences, back()))),
            of_views("synonyms", lambda: ([view] for view in _views(Synonyms(), sentences, cache))),
        ]
    if synthesizer:
        makers.append((SYNTHETIC, lambda: _triplets(SYNTHETIC, _synthetic(sentences, synthesizer, cache))))
    return dict(makers)


def halves_task(texts: Sequence[str]) -> Task:
    """The first half of a sentence looks for the second among all second halves."""
    pairs = [(first, second) for first, second in halves(texts) if _key(first) != _key(second)]
    documents = _distinct([second for _, second in pairs])
    place = {key: number for number, key in enumerate(documents)}
    right: dict[str, set[int]] = {}
    for first, second in pairs:
        right.setdefault(first, set()).add(place[_key(second)])
    return _finding_task("halves", [[first] for first in right], right, list(documents.values()))


def view_task(name: str, texts: Sequence[str], views: Sequence[Sequence[str]]) -> Task:
    """The views of each text look for it among all texts, which are distinct.

    A view that two texts share, or that is another text itself, finds either; one that is empty, or its own text, asks
    nothing.
    """
    place = {_key(text): number for number, text in enumerate(texts)}
    right: dict[str, set[int]] = {}
    asked = []
    for number, (text, some) in enumerate(zip(texts, views, strict=True)):
        asked.append([view for view in some if view and _key(view) != _key(text)])
        for view in asked[-1]:
            right.setdefault(view, {place.get(_key(view), number)}).add(number)
    return _finding_task(name, [some for some in asked if some], right, texts)


def _finding_task(
    name: str, asked: Sequence[Sequence[str]], right: Mapping[str, set[int]], documents: Sequence[str]
) -> Task:
    """An item is the mean over the queries that were asked for it: `mrr@10`, `recall@1` and `recall@10`.

    `right` has the numbers of each query's right documents; ties go against the system.
    """
    queries = list(right)
    row = {query: number for number, query in enumerate(queries)}

    def score(lookup: Lookup) -> Scores:
        ranks = ranks_of(lookup(queries), lookup(documents), list(right.values()))

        def items(metric: Callable[[Ranks], float]) -> Score:
            each = [metric([found]) for found in ranks]
            return Score("mean", np.array([[fmean(each[row[query]] for query in some)] for some in asked]))

        return {
            "mrr@10": items(partial(mrr_at, K)),
            "recall@1": items(partial(recall_at, 1)),
            "recall@10": items(partial(recall_at, K)),
        }

    settings = {"task": "finding", "k": K, "items": len(asked), "documents": len(documents)}
    content = json.dumps([asked, {query: sorted(some) for query, some in right.items()}, documents], ensure_ascii=False)
    digest = hashlib.sha256(content.encode()).hexdigest()
    needed = [*queries, *documents] if queries else []
    return Task(name, "mrr@10", {"symmetric": needed}, score, SOURCE, digest, settings)


def is_at_chance(score: Score, documents: int) -> bool:
    """Whether a `recall@10` is no better than ten documents drawn at random, by an exact binomial test.

    Of the task `halves` it says that the text is no prose to this model: nothing ties a sentence's halves together.
    """
    from scipy.stats import binomtest

    hits, queries = int(score.items.sum()), len(score.items)
    return bool(binomtest(hits, queries, min(1.0, K / documents), alternative="greater").pvalue >= CHANCE)


def halves(texts: Sequence[str]) -> list[Pair]:
    """The two halves of each sentence that is long enough, cut behind the middle word, or the middle character."""
    pairs = []
    for text in texts:
        units, between = _units(text)
        if len(units) >= (FEWEST_WORDS if between else FEWEST_CHARACTERS):
            middle = (len(units) + 1) // 2
            pairs.append((between.join(units[:middle]), between.join(units[middle:])))
    return pairs


def few_words(text: str) -> list[str]:
    """A third of the text's words, drawn several times; texts of fewer than six words have too little to draw."""
    units, between = _units(text)
    enough = len(units) >= (FEWEST_WORDS if between else FEWEST_CHARACTERS)
    drawn = (without_some_words(text, 2 / 3, draw) for draw in range(DRAWS))
    return list(dict.fromkeys(drawn)) if enough else []


def without_some_words(text: str, share: float = 1 / 3, draw: int = 0) -> str:
    """The text without a share of its words, by a chance that depends on text and draw alone; a single word stays."""
    units, between = _units(text)
    by_chance = sorted(range(len(units)), key=lambda place: seed_for(draw * len(units) + place, text))
    gone = set(by_chance[: min(round(share * len(units)), len(units) - 1)])
    return between.join(unit for place, unit in enumerate(units) if place not in gone)


def changed_words(texts: Sequence[str], views: Sequence[str]) -> list[Triplet]:
    """Each sentence with its view, and with a copy of itself in which one word is another sentence's.

    The word that changes is the rarest of those with four letters or more; what comes in its place is another
    sentence's rarest. A view that is empty, or the sentence itself, asks nothing.
    """
    counts: dict[str, int] = {}
    for text in texts:
        for word in CONTENT.findall(text):
            counts[word.casefold()] = counts.get(word.casefold(), 0) + 1
    rarest = {text: word for text in texts if (word := _rarest(text, counts))}
    order = sorted(rarest, key=lambda text: seed_for(0, text))
    following = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    triplets = []
    for text, view in zip(texts, views, strict=True):
        if text in rarest and view and _key(view) != _key(text):
            other = rarest[following[text]]
            changed = re.sub(rf"\b{re.escape(rarest[text])}\b", other, text)
            if _key(other) != _key(rarest[text]):
                triplets.append((text, view, changed))
    return triplets


def _rarest(text: str, counts: Mapping[str, int]) -> str | None:
    return min(CONTENT.findall(text), key=lambda word: (counts[word.casefold()], word), default=None)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _distinct(texts: Sequence[str]) -> dict[str, str]:
    """The first of each text that differs in more than case and spaces, by its key."""
    known: dict[str, str] = {}
    for text in texts:
        known.setdefault(_key(text), text)
    return known


def _units(text: str) -> tuple[list[str], str]:
    """The words of a text and what stands between them; its characters where the script marks no words."""
    words = text.split()
    unspaced = 2 * len(UNSPACED.findall(text)) > len("".join(words))
    return (list("".join(words)), "") if unspaced else (words, " ")


def _views(settings: BackTranslation | Synonyms, texts: Sequence[str], cache: Path) -> list[str]:
    """Return a view of each text, made now or cached; empty views if the package that makes them is missing."""
    try:
        (maker,) = makers_for(settings)
    except MissingPart:
        return [""] * len(texts)
    views, column = ViewCache(cache, maker.identity), pa.chunked_array([pa.array(texts, pa.large_string())])
    make_missing(maker, column, views, settings.kind, True)
    table = views.table()
    made: list[str] = table.column("view").take(pa.array(find(table.column("text"), column))).to_pylist()
    return made


def _triplets(name: str, triplets: Sequence[Triplet]) -> Task:
    anchors, positives, negatives = zip(*triplets, strict=True) if triplets else ((), (), ())
    columns = {"anchor": anchors, "positive": positives, "negatives": [[text] for text in negatives]}
    return triplet_task(name, Rows(columns, SOURCE))


def _synthetic(texts: Sequence[str], synthesizer: str, cache: Path) -> list[Triplet]:
    """Each text with a sentence that follows from it and one that contradicts it, as a synthesizer writes them."""
    from sentloom.writing.synthesize import synthesize
    from sentloom.writing.triplets import TRIPLETS

    digest = hashlib.sha256(json.dumps([list(texts), synthesizer], ensure_ascii=False).encode()).hexdigest()
    folder = cache / f"synthetic-{digest[:20]}"
    table = pa.table({"text": pa.array(texts, pa.large_string()), FILE: pa.array([0] * len(texts), pa.int32()),
                      LINE: pa.array(range(1, len(texts) + 1), pa.int64())})  # fmt: skip
    synthesize(Dataset(Shape.TEXTS, table, (SOURCE,), "row", digest), synthesizer, folder)
    written = pq.read_table(folder / TRIPLETS).to_pydict()  # there may be none: filters drop what is not sure
    return list(zip(written["anchor"], written["positive"], written["negative"], strict=True))
