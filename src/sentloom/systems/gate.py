"""The gate for CI: whether a new search is at least as good as an old one on the same rows, paired over clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sentloom.data.dataset import Dataset
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import corrected_level, is_within
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.clusters import Keys, apart_from, union
from sentloom.fitting.evaluation_sets import read_sets
from sentloom.fitting.gate import few_clusters, mean_measure, measure, record_use
from sentloom.fitting.measures import Measure, metric_name, one_decimal, rounded_down
from sentloom.fitting.request import Log
from sentloom.fitting.shapes.texts import FEWEST_ITEMS
from sentloom.fitting.stored import is_fit, read_fit, test_parts
from sentloom.fitting.tasks import task_labels
from sentloom.systems.results_file import ResultsFile
from sentloom.systems.sides import Search, Side, open_side, stemmed

Finding = Literal["identical", "better", "no worse", "worse", "cannot tell"]
EXIT_CODES: dict[Finding, int] = {"identical": 0, "better": 0, "no worse": 0, "worse": 1, "cannot tell": 3}
MARGIN = 1.0  # points that a new system may be worse


@dataclass(frozen=True)
class Gated:
    """What the gate found."""

    old: str
    new: str
    finding: Finding
    margin: float
    measures: tuple[Measure, ...] = ()
    total: Measure | None = None  # None: the two are identical, and nothing was scored
    left_out: int = 0  # rows that one of the two had trained on
    uses: int = 0  # of the rows

    @property
    def exit_code(self) -> int:
        """0: better or no worse; 1: worse; 3: cannot tell."""
        return EXIT_CODES[self.finding]

    @property
    def line(self) -> str:
        """As in "GATE better +2.1 nDCG@10 [0.8, 3.4] margin=1 level=95% clusters=98 effective=91.4 uses=1"."""
        if self.total is None:
            return f"GATE {self.finding} margin={self.margin:g}"
        total = self.total
        low, high = one_decimal(total.low), one_decimal(total.high)
        gain = f"{total.difference:+.1f} {metric_name(total.metric)} [{low}, {high}]"
        counts = f"clusters={total.clusters} effective={rounded_down(total.effective)} uses={self.uses}"
        return f"GATE {self.finding} {gain} margin={self.margin:g} level={100 * total.level:.4g}% {counts}"

    @property
    def reason(self) -> str:
        """The finding as a sentence."""
        if self.total is None:
            return "Both are the same search, so there is nothing to compare."
        interval = f"the {100 * self.total.level:.4g}% interval of the difference"
        if not self.total.has_enough_clusters:
            return f"Nothing can be said: {few_clusters(self.total.clusters, self.total.effective)}."
        match self.finding:
            case "better":
                return f"The new search is better: {interval} is above 0."
            case "no worse":
                return f"The new search is not worse by {self.margin:g} points or more, as {interval} shows."
            case "worse":
                return f"The new search is worse: {interval} is below 0 and reaches beyond {self.margin:g} points."
            case _:
                more = "give more rows, or a larger --margin"
                return f"The new search may be worse by {self.margin:g} points or more, or not: {more}."


def gate(
    old: str, new: str, data: Sequence[str], log: Log, *, margin: float = MARGIN, memory: Memory | None = None
) -> Gated:
    """Compare two searches on the rows of `data` that neither has trained on, or on the test rows of two fits."""
    if not 0 <= margin < 100:
        raise InputError("--margin", f"{margin} is out of range", "points from 0 to 100", "use 1, for example")
    memory, sides = memory or open_memory(), [open_side(name) for name in (old, new)]
    for name, side, other in zip((old, new), sides, sides[::-1], strict=True):
        if isinstance(side, ResultsFile) and side.values and not (isinstance(other, ResultsFile) and other.values):
            problem = "it has scores of a metric that only their author knows"
            raise InputError(name, problem, "two files of scores, or results", "give the results of each query")
    tasks, left_out = _tasks(new, data, union([side.seen for side in sides if isinstance(side, Search)]), log)
    sides = [stemmed(side, tasks) if isinstance(side, Search) else side for side in sides]
    before, after = sides
    if before.identity == after.identity:
        return Gated(old, new, "identical", margin, left_out=left_out)
    uses = record_use(tasks, after.identity, before.identity)
    measures, total, scores = _measured(sides, tasks, corrected_level(uses.number), memory)
    return Gated(old, new, finding(total, *scores, margin), margin, tuple(measures), total, left_out, uses.number)


def _tasks(new: str, data: Sequence[str], seen: Keys, log: Log) -> tuple[list[Task], int]:
    """The tasks of the rows that nothing was trained on, and how many rows were left out."""
    if not data and is_fit(new):
        return _test_tasks(Path(new), seen)
    if not data:
        raise InputError("DATA", "no data is given", "rows that both are tested on", "name a file")
    left_out = 0

    def unseen(rows: Dataset) -> Dataset:
        nonlocal left_out
        apart = apart_from(rows, seen) if len(seen) else rows
        left_out += len(rows) - len(apart)
        if not len(apart):
            problem, fix = "a model has trained on all of its rows", "give rows that are new to both"
            raise InputError(rows.files[0], problem, f"at least {FEWEST_ITEMS} others", fix)
        return apart

    return list(read_sets(data, None, (), log, unseen)), left_out


def _test_tasks(folder: Path, seen: Keys) -> tuple[list[Task], int]:
    """The test rows of a fit that the other one has not seen either."""
    parts, left_out = test_parts(folder, read_fit(folder), seen)
    if not parts:
        problem = f"{left_out:,} of its test rows were seen by the other fit, and too few are left"
        raise InputError(str(folder), problem, f"at least {FEWEST_ITEMS}", "name data that is new to both")
    return [task for part in parts for task in part.tasks], left_out


def _measured(
    sides: Sequence[Side], tasks: Sequence[Task], level: float, memory: Memory
) -> tuple[list[Measure], Measure, tuple[list[Score], list[Score]]]:
    """Both on each task, and the mean over them."""
    befores, afters = (
        [{task.main: scores[task.main]} for task, scores in zip(tasks, side.scores(tasks, memory), strict=True)]
        for side in sides
    )
    scored = zip(tasks, task_labels(tasks), befores, afters, strict=True)
    measures = [measure(task, label, "deciding", old, new, level) for task, label, old, new in scored]
    before, after = ([scores[task.main] for task, scores in zip(tasks, of, strict=True)] for of in (befores, afters))
    return measures, mean_measure(measures, before, after, level), (before, after)


def finding(total: Measure, before: Sequence[Score], after: Sequence[Score], margin: float) -> Finding:
    """What the interval of the difference shows."""
    if not total.has_enough_clusters:
        return "cannot tell"
    if total.better:
        return "better"
    constant = total.low == total.high  # no cluster differs: those that were not seen might
    if total.low > -margin and (not constant or is_within(after, before, margin)):
        return "no worse"
    return "worse" if total.worse else "cannot tell"
