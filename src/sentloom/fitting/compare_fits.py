"""Two fits side by side: the model of the newer one against the model of the older one, on the same test rows.

The rows are the test rows of the newer fit without those that the older one trained or chose on. Both models search the
same corpus, and the comparison counts as a use of the rows, unless it is of a model with itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import corrected_level
from sentloom.evaluation.task import CLUSTER
from sentloom.files import at_its_name
from sentloom.fitting.clusters import connecting_keys, distinct_keys, sentences, union
from sentloom.fitting.gate import Basis, judge, record_use
from sentloom.fitting.measures import Measure, Verdict, verdict_line
from sentloom.fitting.result import FitResult
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.texts import FEWEST_ITEMS
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import MOST_CANDIDATES, HeldOut, held_out
from sentloom.fitting.verify import Duel

REPORT, SUFFIX = "report.json", ".fit"
SIDES = ("train", "test")  # that every fit has


@dataclass(frozen=True)
class FitComparison:
    """What the newer of two fits gained over the older one: `before` is the older model, `after` the newer one."""

    old: str
    new: str
    verdict: Verdict
    reason: str
    measures: tuple[Measure, ...]
    total: Measure
    rows: int  # that both were tested on
    left_out: int  # test rows of the newer fit that the older one had seen
    uses: int
    settings: Mapping[str, tuple[str, str]]  # what differs between the two

    @property
    def verdict_line(self) -> str:
        """The verdict as one line that is easy to search for."""
        return verdict_line(self.verdict, self.total, self.uses)


def is_fit(name: str | Path) -> bool:
    """Whether a name means the folder of a fit, which may be missing or damaged."""
    return Path(name).suffix == SUFFIX or (Path(name) / REPORT).is_file()


def compare_fits(old: Path, new: Path) -> FitComparison:
    """Test the models of two fits on the rows that neither has seen."""
    for folder in (old, new):
        _refuse_incomplete(folder)
    results = [FitResult.read(folder / REPORT) for folder in (old, new)]
    parts, left_out = _common_rows(old, new, results[1])
    tasks = [task for part in parts for task in part.tasks]
    before, after = (tested_encoder(folder, result) for folder, result in zip((old, new), results, strict=True))
    uses = record_use(tasks, after.fingerprint(), before.fingerprint())
    duel = Duel(before, after, open_memory(new / "measured"))
    measures, total = duel.measured(tasks, "deciding", corrected_level(uses.number))
    gate = judge(total, total.difference, Basis("the older model"))
    rows = sum(len(part.data) for part in parts)
    differing = dict(_differing(*results))
    return FitComparison(
        str(old), str(new), gate.verdict, gate.reason, tuple(measures), total, rows, left_out, uses.number, differing
    )


def _refuse_incomplete(folder: Path) -> None:
    """Say which of the two fits is missing, or which part of it."""
    if not folder.is_dir():
        raise _incomplete(folder, "there is no such folder", "correct the name")
    if not (folder / REPORT).is_file():
        raise _incomplete(folder, f"its {REPORT} is missing", "run the fit to its end, or correct the name")
    stored = {side: {number for number, _ in _files(folder, side)} for side in SIDES}
    for side, numbers in stored.items():
        if not numbers or numbers != stored["train"]:
            raise _incomplete(folder, f"its {side} rows are missing in {folder / 'data'}", "fit again")


def _incomplete(folder: Path, problem: str, fix: str) -> InputError:
    return InputError(str(folder), problem, "the folder that `sentloom fit` wrote", fix)


def tested_encoder(folder: Path, result: FitResult) -> Encoder:
    """The model that the gate of a fit tested, whether or not it was written."""
    path = folder / result.tested
    if not result.tested or not at_its_name(path).is_dir():
        raise _incomplete(folder, "its model is missing", "fit again")
    return shared_encoder(path)


def _common_rows(old: Path, new: Path, result: FitResult) -> tuple[list[HeldOut], int]:
    """The test rows of the newer fit that the older one has not seen, as tasks, and how many it has."""
    trained, chosen_on = ([*chain(*stored_rows(old, side).values())] for side in ("train", "validation"))
    seen = union([distinct_keys(trained), connecting_keys(chosen_on)])
    parts, left_out = list[HeldOut](), 0
    validation, train = stored_rows(new, "validation"), stored_rows(new, "train")
    for number, (rows,) in stored_rows(new, "test").items():
        test = rows.select(~sentences(rows).touching(seen))
        left_out += len(rows) - len(test)
        split = Split(train[number][0], validation.get(number, [test[:0]])[0], test, test[:0])
        part = _part(result.sources[number - 1].name, split, corpus_texts(new, number)) if len(test) else None
        if part and min((task.item_count for task in part.tasks), default=0) >= FEWEST_ITEMS:
            parts.append(part)
    labelled = [part for part in parts if part.labelled] or parts
    if not labelled:
        problem = f"{left_out:,} of its test rows were seen by {old}, and too few are left"
        raise InputError(str(new), problem, f"at least {FEWEST_ITEMS}", "compare fits on the same or on separate data")
    return labelled, left_out


def _part(name: str, split: Split, more: Sequence[str]) -> HeldOut:
    return held_out(name, split.test, handler(split.test).corpus(split, more, MOST_CANDIDATES))


def stored_rows(folder: Path, side: str) -> dict[int, list[Dataset]]:
    """The rows of one side of each input, by its number; documents with titles are pairs, and texts as well."""
    rows: dict[int, list[Dataset]] = {}
    for number, path in _files(folder, side):
        rows.setdefault(number, []).append(read(path, shape=_shape(path, side), keep=(CLUSTER,)))
    return rows


def _files(folder: Path, side: str) -> list[tuple[int, Path]]:
    """The files of one side, each with the number of its input."""
    paths = sorted((folder / "data").glob(f"*-{side}.parquet"))
    return [(int(path.name.partition("-")[0]), path) for path in paths]


def _shape(path: Path, side: str) -> Shape:
    return Shape(path.name.removesuffix(f"-{side}.parquet").partition("-")[2])


def corpus_texts(folder: Path, number: int) -> list[str]:
    """What the queries of an input searched in a fit: its own texts, and those of `--corpus`."""
    path = folder / "corpus.parquet"
    rows = pq.read_table(path).to_pylist() if path.is_file() else []
    return [row["text"] for row in rows if {"0", str(number)} & set(row.get("of", "0").split())]


def _differing(old: FitResult, new: FitResult) -> Iterator[tuple[str, tuple[str, str]]]:
    """What differs between the two, in words."""
    facts = [
        {
            "base": result.base,
            "route": result.winner or "none",
            "steps": f"{result.steps:,}",
            "budget": result.budget,
            "training rows": f"{sum(source.rows.train for source in result.sources):,}",
            "verdict": result.verdict,
            "command": result.command,
        }
        for result in (old, new)
    ]
    return ((name, (facts[0][name], facts[1][name])) for name in facts[0] if facts[0][name] != facts[1][name])
