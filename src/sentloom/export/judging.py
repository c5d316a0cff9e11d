"""What an exported model is scored on: sets that the user names, the fit's validation rows, or everyday triplets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import main_scores
from sentloom.evaluation.suites.catalog import load_suites
from sentloom.evaluation.suites.set_source import SetSource
from sentloom.evaluation.task import Task
from sentloom.fitting.compare_fits import REPORT, stored_rows
from sentloom.fitting.general import general_task
from sentloom.fitting.result import FitResult
from sentloom.fitting.tasks import held_out


def judging_tasks(encoder: Encoder, against: Sequence[str] = (), data: Path | None = None) -> list[Task]:
    """The named sets; without any, the validation rows beside a fitted model; without these, the everyday triplets."""
    if against:
        return named_tasks(against, data)
    return validation_tasks(Path(encoder.backbone.model.config.name_or_path or "")) or [general_task()]


def named_tasks(against: Sequence[str], data: Path | None) -> list[Task]:
    """The tasks of sets and files by name; `data` is the folder of the sets."""
    named = [task for suite in load_suites(against, SetSource(data)) for task in suite.tasks]
    if not named:
        raise InputError("against", "none of the sets is there", "at least one", "name a file, or give the data")
    return named


def validation_tasks(model: Path) -> list[Task]:
    """The tasks of the validation rows that a fit wrote beside its model; labelled ones only, if there are any."""
    fit = Path(f"{model}.fit")
    stored, names = stored_rows(fit, "validation"), _input_names(fit)
    parts = [
        held_out(f"validation rows of {names.get(number, f'input {number}')}", rows)
        for number, some in stored.items()
        for rows in some
    ]
    labelled = [part for part in parts if part.labelled]
    return [task for part in labelled or parts for task in part.tasks]


def _input_names(fit: Path) -> Mapping[int, str]:
    """What the inputs of a fit are called, by number from 1, without their folders."""
    report = fit / REPORT
    sources = FitResult.read(report).sources if report.is_file() else ()
    return {number: Path(one.name).name for number, one in enumerate(sources, start=1)}


def mean_score(encoder: Encoder, tasks: Sequence[Task]) -> float:
    """The mean of the main scores, in points."""
    scores = [score.value for score in main_scores(encoder, tasks, show_progress=True)]
    return sum(scores) / len(scores)
