"""Evaluate models on suites: the implementation of `sentloom evaluate` and its Python function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment

from sentloom.data.in_memory import Data
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, Model, score_tasks
from sentloom.evaluation.models import check_model, open_model
from sentloom.evaluation.results import Member, SuiteResult, suite_result
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import SUITES, LoadedSuite, load_suites
from sentloom.evaluation.task import UNLIKE, Kind, Task, signed_note
from sentloom.files import cache_folder
from sentloom.search.vectors import VectorCache

AGGREGATIONS = ("all", "mean", "wmean")

OneModel: TypeAlias = str | Path | Model
Models: TypeAlias = OneModel | Sequence[OneModel] | Mapping[str, OneModel | Sequence[OneModel]]


TABLE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<table>
{% for row in rows %}
<tr><th>{{ row[0] }}</th>{% for cell in row[1:] %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</table>
{% for note in notes %}
<p>{{ note }}</p>
{% endfor %}
""")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of `evaluate`: a description of each model, and the table of each suite.

    It shows itself as a table of the main scores, with notes; `suites` has intervals and other scores.
    """

    models: Mapping[str, Mapping[str, Any]]
    suites: tuple[SuiteResult, ...]

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """The main score of each model on each set."""
        sets = [result for suite in self.suites for result in suite.sets]
        return {name: {result.name: result.cells[name][result.main].value for result in sets} for name in self.models}

    @property
    def differences(self) -> dict[str, dict[str, tuple[float, float | None, float | None]]]:
        """For every model but the first, the difference of its main score from the first model's, by set.

        Each with its interval, paired over the items; (None, None) if there is none. `Cell.level` is its level.
        """
        cells = {
            model: {result.name: result.cells[model][result.main] for suite in self.suites for result in suite.sets}
            for model in list(self.models)[1:]
        }
        return {
            model: {
                name: (cell.difference, cell.difference_low, cell.difference_high)
                for name, cell in of_sets.items()
                if cell.difference is not None
            }
            for model, of_sets in cells.items()
        }

    @property
    def not_scored(self) -> list[str]:
        """The suites and sets that were named and have nothing to score; the notes of the suite say why."""
        return [suite.name for suite in self.suites if not suite.sets]

    @property
    def notes(self) -> list[str]:
        """Everything a reader of the scores must know, as it is shown below the table."""
        return [signed_note(note) for suite in self.suites for note in suite.notes]

    def _rows(self) -> list[list[str]]:
        """The table as it is shown: a row per set, a column per model."""
        sets = [result for suite in self.suites for result in suite.sets]
        cells = [[result.cells[model][result.main] for model in self.models] for result in sets]
        scores = [[f"{cell.value:.2f}{UNLIKE * (not cell.comparable)}" for cell in row] for row in cells]
        names = [[result.name, result.main] for result in sets]
        return [["set", "score", *self.models], *(name + row for name, row in zip(names, scores, strict=True))]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join([*("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows), *self.notes])

    def _repr_html_(self) -> str:
        return TABLE.render(rows=self._rows(), notes=self.notes)


@dataclass(frozen=True)
class Scoring:
    """What is scored, and how."""

    data: Path | None = None  # the folder of published sets; None: the hub
    pooling: str | None = None  # of models that state none
    aggregation: str = "all"  # of the sub-sets of STS sets
    fast: bool = False  # classifiers with fewer folds and steps
    hidden: int = 0  # units of a classifier
    checked: bool = True  # whether a set with other counts than the published one is refused

    @property
    def source(self) -> SetSource:
        """Where sets come from, and the classifiers of those that need one."""
        return SetSource(self.data, self.checked, {"preset": "fast" if self.fast else "paper", "hidden": self.hidden})


PUBLISHED = Scoring()


def evaluate(
    models: Models,
    suites: Sequence[Data] = ("sts",),
    how: Scoring = PUBLISHED,
    *,
    memory: Memory | None = None,
    log: Callable[[str], None] = lambda line: None,
    show_progress: bool = False,
) -> Evaluation:
    """Score models on suites, sets, files or data in memory; sets come from a data folder or, without one, the hub.

    A published set that is not there, or has other counts, is left out, with the reason, unless nothing else is left.
    `models` are names or encoders, or labels that map to a name, an encoder, or those of several seeds. With `memory`
    (see `open_memory`), vectors and scores are cached, and an interrupted run resumes.
    """
    if how.aggregation not in AGGREGATIONS:
        problem = f"{how.aggregation!r} is unknown"
        raise InputError("aggregation", problem, f"one of {', '.join(AGGREGATIONS)}", "correct it")
    by_label = labelled(models)
    for model in chain(*by_label.values()):
        if isinstance(model, str):
            check_model(model)  # before the sets are read, which may take minutes
    loaded = load_suites(suites, how.source, partly=True)
    members: dict[str, list[list[Member]]] = {}  # label -> seed -> suite -> the scores of each task
    facts: dict[str, dict[str, Any]] = {}
    for label, seeds in by_label.items():
        opened = [open_model(seed, how.pooling) if isinstance(seed, str) else seed for seed in seeds]
        members[label] = [_score(model, loaded, memory, log, show_progress) for model in opened]
        facts[label] = {"models": [_facts(seed, model) for seed, model in zip(seeds, opened, strict=True)]}
    results = []
    for place, suite in enumerate(loaded):
        chosen = {label: [suites[place] for suites in of_seeds] for label, of_seeds in members.items()}
        results.append(suite_result(*_aggregated(suite, chosen, how.aggregation)))
    return Evaluation(facts, tuple(results))


def open_memory(folder: Path | None = None, limit: float = 2e9) -> Memory:
    """Open the cache of vectors (up to `limit` bytes) and scores in a folder, by default the user's cache."""
    place = folder or cache_folder()
    return Memory(VectorCache(place / "vectors", limit), place / "scores")


def parse_models(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse the command's `[LABEL=]MODEL[,MODEL...]`; models separated by commas are seeds of the same model."""
    models: dict[str, tuple[str, ...]] = {}
    for text in texts:
        label, equals, names = text.partition("=")
        label, names = (label, names) if equals else (text, text)
        if label in models or not all(names.split(",")):
            problem = f"{text!r} is not valid"
            raise InputError("models", problem, "LABEL=MODEL,MODEL..., each label once", "correct it")
        models[label] = tuple(names.split(","))
    return models


def labelled(models: Any) -> dict[str, list[str | Model]]:
    """The seeds of each label. A name is its own label; Encoders in a list are "Encoder 1", "Encoder 2", and so on."""
    if isinstance(models, Mapping):
        by_label = {label: _as_list(seeds) for label, seeds in models.items()}
    elif isinstance(models, Sequence | Path):
        numbers = count(1)
        by_label = {
            model if isinstance(model, str) else f"{type(model).__name__} {next(numbers)}": [model]
            for model in _as_list(models)
        }
    else:
        by_label = {type(models).__name__: [models]}
    if not by_label or not all(by_label.values()):
        empty = "".join(f" for {label!r}" for label, seeds in by_label.items() if not seeds)
        raise InputError("models", f"no model is given{empty}", "one or more", "name a model, or pass an Encoder")
    return by_label


def _as_list(models: Any) -> list[str | Model]:
    several = isinstance(models, Sequence) and not isinstance(models, str)
    return [str(model) if isinstance(model, Path) else model for model in (models if several else [models])]


def _facts(asked: str | Model, model: Model) -> dict[str, Any]:
    """Describe a model so that it can be scored again."""
    facts = {"model": asked if isinstance(asked, str) else type(model).__name__, "sha256": model.fingerprint()}
    return {**facts, "pooling": str(model.pooling)} if isinstance(model, Encoder) else facts


def _score(
    model: Model,
    loaded: Sequence[LoadedSuite],
    memory: Memory | None,
    log: Callable[[str], None],
    show_progress: bool,
) -> list[Member]:
    """Score all suites in one call, so that a sentence in several of them is encoded once."""
    tasks = [task for suite in loaded for task in suite.tasks]
    scores = iter(score_tasks(model, tasks, memory, show_progress=show_progress))
    for note in dict.fromkeys(note for note in ((memory.vectors.note, memory.note) if memory else ()) if note):
        log(note)
    return [[next(scores) for _ in suite.tasks] for suite in loaded]


def _aggregated(
    loaded: LoadedSuite, models: Mapping[str, Sequence[Member]], aggregation: str
) -> tuple[LoadedSuite, Mapping[str, Sequence[Member]]]:
    """Change the main score of the STS sets; an STS set without known sub-sets is dropped, other sets stay."""
    if aggregation == "all":
        return loaded, models
    first = next(iter(models.values()))[0]
    main = f"spearman-{aggregation}"
    known = [
        place
        for place, (task, scores) in enumerate(zip(loaded.tasks, first, strict=True))
        if main in scores or not _is_sts(task)
    ]
    tasks = tuple(_with_main(loaded.tasks[place], main) for place in known)
    unknown = {task.name: "its sub-sets are not known" for task in _others(loaded.tasks, known)}
    chosen = {label: [[member[place] for place in known] for member in seeds] for label, seeds in models.items()}
    return replace(loaded, tasks=tasks, missing={**loaded.missing, **unknown}), chosen


def _is_sts(task: Task) -> bool:
    """Whether a task is a set of the suite sts; SentGLUE's STS-B, which has a classifier, is not."""
    sts = SUITES["sts"]
    has_name = task.name in (*sts.sets, *sts.parts)
    return has_name and task.main == "spearman" and task.settings.task is Kind.CORRELATION


def _with_main(task: Task, main: str) -> Task:
    return replace(task, main=main) if _is_sts(task) else task


def _others(tasks: Sequence[Task], known: Sequence[int]) -> list[Task]:
    return [task for place, task in enumerate(tasks) if place not in known]
