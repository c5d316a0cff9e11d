"""Which of several searches is best on a team's own rows, and at what cost. Nothing is trained.

The rows are divided as a `fit` on the same files divides them, and its test rows are left alone: training rows ask, and
validation rows choose the weights of words and re-rankers. Every search is first scored on some queries; one that is
shown to be worse than the best there goes no further.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sentloom.encoder.system import Fusion, Reranking, System
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.fusion import WEIGHTS, SearchParts, best_weight, with_reranker
from sentloom.evaluation.reranking import MOST_QUERIES, sample_queries
from sentloom.evaluation.retrieval import search_task
from sentloom.evaluation.significance import (
    are_enough,
    average_interval,
    compare_averages,
    effective_clusters,
    joint_level,
)
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.clusters import with_clusters
from sentloom.fitting.gate import record_use
from sentloom.fitting.inputs import read_inputs, searched_besides, sources_of
from sentloom.fitting.request import Log, make_request
from sentloom.fitting.shapes import handler
from sentloom.fitting.split import Split, split_inputs
from sentloom.fitting.tasks import MOST_CANDIDATES, held_out_part
from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.search.words import stemming_of
from sentloom.systems.costs import Costs, measure_costs
from sentloom.systems.sides import BM25, JOIN, NoVectors, Search, open_search

MOST_ROWS = 1_000  # that ask
FIRST_QUERIES = 100  # on which a search may be stopped
SEED = 0


@dataclass(frozen=True)
class Standing:
    """One search beside the best one."""

    name: str
    system: str  # in words
    score: float
    low: float
    high: float
    difference: float | None = None  # from the best, with an interval for all comparisons together; None: the best
    difference_low: float | None = None
    difference_high: float | None = None
    queries: int = 0
    stopped: bool = False  # after the first queries: it can no longer be the best
    costs: Costs = field(default_factory=Costs)

    @property
    def may_be_best(self) -> bool:
        """Whether it is the best, or not shown to be worse."""
        return not self.stopped and (self.difference_high is None or self.difference_high >= 0)

    @property
    def slowness(self) -> float:
        """Seconds of a query, or of a text where nothing is searched."""
        return self.costs.latency[0] if self.costs.latency else 1 / (self.costs.texts_per_second or np.inf)


@dataclass(frozen=True)
class Choice:
    """All searches, the best first."""

    metric: str
    rows: int
    level: float  # of each of the differences
    effective: float  # clusters
    standings: tuple[Standing, ...]

    @property
    def advised(self) -> Standing:
        """The fastest of those that may be the best."""
        return min(
            (standing for standing in self.standings if standing.may_be_best), key=lambda standing: standing.slowness
        )

    @property
    def advice(self) -> str:
        """What to use, in one sentence."""
        best, advised = self.standings[0], self.advised
        may = sum(standing.may_be_best for standing in self.standings)
        if not are_enough(self.effective):
            return f"Give more rows: {best.name} has the highest score, but these are too few to show a difference."
        if may == 1:
            return f"Use {best.name}: every other one is shown to be worse."
        if advised is best:
            return f"Use {best.name}: it has the highest score and is the fastest of the {may} that may be the best."
        return f"Use {advised.name}: of the {may} that may be the best it is the fastest; {best.name} scores highest."


@dataclass(frozen=True)
class Asked:
    """What is asked, what chooses weights, and the notes of the split."""

    tasks: tuple[Task, ...]
    tuning: tuple[Task, ...]
    rows: int


def choose(data: Sequence[str], models: Sequence[str], log: Log, *, reranker: str | None = None) -> Choice:
    """Score all models, words alone and beside each of them, and with a re-ranker if one is named."""
    memory, asked = open_memory(), asked_rows(data, log)
    first = [first_queries(task) for task in asked.tasks]
    tuned, scores = dict[str, Search](), dict[str, list[Score]]()
    for search in named_searches(models, asked, reranker):
        log(f"scoring {search.name} ...")
        tuned[search.name] = with_weights(search, asked.tuning, memory)
        scores[search.name] = _main(tuned[search.name], first, memory)
    on_first = dict(scores)
    stopped = hopeless(scores) if _count(first) < _count(asked.tasks) else []
    for name in stopped:
        log(f"{name} is stopped after {_count(first):,} queries: it can no longer be the best")
    running = [name for name in scores if name not in stopped]
    for name in running:
        scores[name] = _main(tuned[name], asked.tasks, memory)
    best, level = max(running, key=lambda name: _mean(scores[name])), joint_level(len(scores) - 1)
    costs = measure_costs(list(tuned.values()), asked.tasks, memory)
    standings = []
    for name, search in tuned.items():
        record_use(asked.tasks, search.identity, tuned[best].identity)
        beside = None if name == best else on_first[best] if name in stopped else scores[best]
        standing = _standing(search, scores[name], beside, level)
        standings.append(replace(standing, costs=costs[name], stopped=name in stopped))
    ordered = sorted(standings, key=lambda standing: (standing.stopped, -standing.score))
    return Choice(asked.tasks[0].main, asked.rows, level, effective_clusters(scores[best]), tuple(ordered))


def _count(tasks: Sequence[Task]) -> int:
    return sum(task.item_count for task in tasks)


def _main(search: Search, tasks: Sequence[Task], memory: Memory) -> list[Score]:
    return [scores[task.main] for task, scores in zip(tasks, search.scores(tasks, memory), strict=True)]


def _mean(scores: Sequence[Score]) -> float:
    return sum(score.value for score in scores) / len(scores)


def hopeless(scores: Mapping[str, Sequence[Score]]) -> list[str]:
    """The searches that are shown to be worse than the best of all, at a level for all comparisons together."""
    best = max(scores, key=lambda name: _mean(scores[name]))
    level = joint_level(len(scores) - 1)
    if not are_enough(effective_clusters(scores[best])):
        return []
    others = [name for name in scores if name != best]
    return [name for name in others if compare_averages(scores[name], scores[best], level=level).high < 0]


def _standing(search: Search, own: Sequence[Score], best: Sequence[Score] | None, level: float) -> Standing:
    """A search beside the best one, if it is another."""
    items = sum(len(score.items) for score in own)
    standing = Standing(search.name, str(search.system), _mean(own), *average_interval(own), queries=items)
    if best is None:
        return standing
    gap = compare_averages(own, best, level=level)
    return replace(standing, difference=gap.difference, difference_low=gap.low, difference_high=gap.high)


# --- the rows ---


def asked_rows(data: Sequence[str], log: Log) -> Asked:
    """The tasks of the rows that a fit would train on, and of those that it would choose on."""
    request = make_request(data, Path("choose"), {})
    inputs = read_inputs(sources_of(request), request, log)
    splits, _ = split_inputs(request, inputs, (), log)
    best, more = max(handler(fit_input.data).trust for fit_input in inputs), tuple(searched_besides(inputs))
    tasks, tuning, rows = list[Task](), list[Task](), 0
    for fit_input, split in zip(inputs, splits, strict=True):
        own = handler(fit_input.data)
        if own.trust < best:
            continue
        if not own.labelled:
            problem, fix = "raw text does not say which search is right", "give some, or fit an encoder to the text"
            raise InputError(fit_input.name, problem, "rows with labels: pairs, scores, labels or titles", fix)
        own_split = divided(split)
        rows += len(own_split.test)
        tasks += held_out_part(fit_input.name, own_split, "test", more, MOST_CANDIDATES).tasks
        tuning += held_out_part(fit_input.name, own_split, "validation", more, MOST_CANDIDATES).tasks
    log(f"{rows:,} training rows ask; the test rows of a fit on the same data are left alone")
    return Asked(tuple(tasks), tuple(tuning), rows)


def divided(split: Split) -> Split:
    """A split whose test rows ask and whose validation rows choose weights; the real test rows are not in it.

    Without validation rows, half of the clusters of the training rows choose.
    """
    names, numbers = np.unique(split.draws, return_inverse=True)
    order = np.random.default_rng(SEED).permutation(len(names))[numbers]  # of each row's cluster
    chooses = np.zeros(len(order), bool) if len(split.validation) else order % 2 == 1
    asks = ~chooses
    if asks.sum() > MOST_ROWS:
        asks &= order <= np.sort(order[asks])[MOST_ROWS - 1]
    asked, choosing = (with_clusters(split.train.select(side), split.clusters[side]) for side in (asks, chooses))
    rest = split.train.select(~asks & ~chooses)
    return Split(rest, split.validation if len(split.validation) else choosing, asked, split.dropped)


def first_queries(task: Task) -> Task:
    """The task with some of its queries, if it is a search with more of them."""
    if task.searched is None or len(task.searched.queries) <= FIRST_QUERIES:
        return task
    few = search_task(task.name, sample_queries(task.searched, FIRST_QUERIES), task.source)
    return replace(few, settings=task.settings)


# --- the searches ---


def named_searches(models: Sequence[str], asked: Asked, reranker: str | None) -> Iterator[Search]:
    """The models as they are named; of data that is searched, words alone and beside each model, and a re-ranker."""
    if len(set(models)) < len(models):
        raise InputError("MODEL", "a model is named twice", "different models", "name each of them once")
    searched = all(task.searched for task in asked.tasks)
    names = dict.fromkeys(models)
    if searched:
        plain = [name for name in models if JOIN not in name and name != BM25]
        names |= dict.fromkeys([BM25, *(f"{name}{JOIN}{BM25}" for name in plain)])
        names |= dict.fromkeys(f"{name}{JOIN}{BM25}{JOIN}{reranker}" for name in plain if reranker)
    if len(names) < 2:
        raise InputError("MODEL", "there is nothing to choose from", "two models or more", "name another one")
    encoders: dict[str, Search] = {}
    for name in names:
        search = open_search(name)
        first = name.split(JOIN)[0]
        encoders.setdefault(first, search)  # the parts of a model share its encoder
        yield replace(search, model=encoders[first].model)


def with_weights(search: Search, tuning: Sequence[Task], memory: Memory) -> Search:
    """The search with the weights that are best on the rows that choose; a weight that it brings along stays."""
    sets = [task.searched for task in tuning if task.searched]
    fusion, again, named = search.system.fusion, search.system.reranking, JOIN in search.name
    if not sets or not (named or isinstance(search.model, NoVectors)):
        return search
    stemming = stemming_of(sets[0].documents)
    parts = [SearchParts.of(searched, search.model, memory, stemming) for searched in sets]
    weight = 0.0
    if fusion:
        alone = isinstance(search.model, NoVectors)
        weight = 1.0 if alone else best_weight([part.ranked(WEIGHTS) for part in parts])
    system = System(Fusion(weight, stemming) if fusion else None)
    return replace(search, system=system if not again else replace(system, reranking=_weighed(again, parts, weight)))


def _weighed(again: Reranking, parts: Sequence[SearchParts], words: float) -> Reranking:
    """A re-ranker with the weight that is best on some queries of the rows that choose."""
    model, rankings = CrossEncoder.load(again.model), []
    for part in parts:
        few = sample_queries(part.searched, MOST_QUERIES // 2)
        place = {query: row for row, query in enumerate(part.searched.queries)}
        some = replace(part, searched=few, queries=part.queries[[place[query] for query in few.queries]])
        (ranked,) = some.ranked([words], again.depth)
        rankings.append(with_reranker(ranked, lambda pairs: pair_scores(model, pairs, show_progress=True), WEIGHTS))
    return replace(again, weight=best_weight(rankings))
