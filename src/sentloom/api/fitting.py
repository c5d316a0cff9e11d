"""`fit` and its result."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from sentloom.api.common import building_in, scored_inputs, silent
from sentloom.arguments import typed
from sentloom.data.in_memory import Data, Inputs
from sentloom.data.limits import FITTING, STRICT
from sentloom.data.shapes import TITLE, Columns, Shape, as_columns, as_shape, one_label_each
from sentloom.encoder import Encoder
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.engine.rows import InputFile, input_file, inputs_in, labels_of
from sentloom.engine.runner import copy_encoder
from sentloom.errors import InputError
from sentloom.fitting.clock import STARTED
from sentloom.fitting.fit import run
from sentloom.fitting.inputs import ID_COLUMNS, LANGUAGE_COLUMNS
from sentloom.fitting.request import Log, Request, make_request, refuse_bad_request, strings
from sentloom.fitting.result import FitResult, Measure
from sentloom.fitting.routes import GivenRoutes
from sentloom.progress import is_watched, note, showing
from sentloom.report.fit_tables import fit_html
from sentloom.report.model_card import facts_of, model_card
from sentloom.report.page import write_report
from sentloom.ticking.answers import read_answers
from sentloom.ticking.verdict import with_ticks, with_true_advice

LEAST_LEFT = 5.0  # seconds to find out whether there is something to tick, whatever the budget

Bases = Annotated[
    str | Path | Sequence[str | Path] | None,
    "the folder or the name of a model, or a list of these",
    "to start from an Encoder in memory, first save it: encoder.save(folder)",
]
Budget = Annotated[str | None, "a time or a number of steps", "for example 10m, 90s, 1.5h or 400steps"]
Dimensions = Annotated[Sequence[int] | None, "a list of whole numbers", "write [384, 256, 128, 64]"]


@dataclass(frozen=True)
class Fit:
    """The result of `fit`. In a notebook it shows itself as a table.

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="10steps", force=True)
    >>> done.verdict, list(done.scores), done.report.name
    ('no difference shown', ['the list', 'general triplets'], 'report.html')
    """

    verdict: str  # "better", "no difference shown" or "worse" than the base
    reason: str
    scores: Mapping[str, Measure] = field(repr=False)  # by name
    model: Path | None  # None if it is not better, unless `force` was given
    report: Path
    result: FitResult = field(repr=False)
    device: str | None = field(default=None, repr=False)  # that the fit was asked to run on
    precision: str | None = field(default=None, repr=False)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder to use: the model that was written, or the base if none was better. It is loaded once."""
        with running_on(self.device, self.precision):
            return Encoder.load(self.model or self.result.base)

    def _repr_html_(self) -> str:
        return fit_html(self.result, self.model, self.report)


@typed
def fit(
    data: Inputs,
    output: str | Path,
    *,
    base: Bases = None,
    budget: Budget = None,
    against: Inputs = (),
    labels: str | Path | Sequence[str | Path] = (),
    general: str | Path | None = None,
    group: str | Sequence[str] = (),
    corpus: Inputs = (),
    dimensions: Dimensions = None,
    writer: str | Path | None = None,
    writer_model: str | None = None,
    max_tokens: int | None = None,
    guide: str | Path | None = None,
    teacher: str | Path | None = None,
    force: bool = False,
    seed: int | None = None,
    shape: Shape | str | None = None,
    columns: Columns = None,
    strict: bool = False,
    examples: bool = True,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log | None = None,
    show_progress: bool | None = None,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it beats its base on held-out rows.

    `data` is a path, a name, or rows in memory; a list of Paths or tables is several inputs. A recipe (.yaml) races its
    own variants, and sets the base, the seed and the lengths itself. A list of strings is a list of texts, unless every
    one of them is a file. `base` is "embedded" by default; several race, and the winner has to beat the best of them.
    `budget` is a time ("10m", the default) or a number of steps ("400steps") for all routes together. `against` are
    sets or data that decide instead of held-out rows. `labels` are files of `sentloom tick` about the same fit, which
    decide where no labels of rows or sets do; nothing is trained on them. `general` is a data folder with STS-B, on
    which general ability is watched. `group` names columns whose values connect rows (a customer, a thread), which are
    then not divided between training and test rows, unless that would put more than 5% of the rows into one cluster.
    `corpus` are more texts to search among. With `dimensions` ([384, 256, 128, 64]), vectors can be truncated to
    their first dimensions.
    `writer` is a language model that writes queries and sentences to learn from: a folder, a hub name, "embedded" (the
    default from 5 minutes on, if it is installed), "none", or the address of an OpenAI-compatible endpoint with its
    `writer_model` and at most `max_tokens` tokens. `guide` is an encoder that says which negatives may be false, by
    default none. `teacher` is a cross-encoder to learn from, if it ranks the validation rows better than
    the base. `force` writes the model even if it is not better. `shape` and `columns` ({"anchor": "title", "positive":
    "body"}) say what the rows are if their column names do not; several label columns are a list ({"text": "message",
    "label": ["intent", "team"]}). Up to 5% of the rows (or ten) may be unusable and are left out; with `strict`, a
    single one is an error. With `examples=False`, the report and the model card show no texts of the rows
    (docs/privacy.md). Messages and progress are shown in a terminal and in a notebook; `show_progress` shows them
    anywhere, or nowhere if it is False. `log` is a function that receives the messages instead. The same call resumes a
    fit that was stopped.

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="2steps", force=True)
    >>> done.verdict, done.model.name, done.encoder.similarity("ticket 7", "ticket 7") > 0.99
    ('no difference shown', 'tickets', True)
    """
    shown = is_watched() if show_progress is None else show_progress
    log = log or (note if shown else silent)
    shape, columns = as_shape(shape), as_columns(columns)
    folder, allow = Request.folder_of(Path(output)), STRICT if strict else FITTING
    keep = (TITLE, *ID_COLUMNS, *LANGUAGE_COLUMNS, *strings(group))
    reading = {"shape": shape, "allow": allow, "keep": keep}
    training = [file for source in inputs_in(data) for file in _by_label(source, folder, log, columns, reading)]
    deciding = scored_inputs(against, folder, log)
    searched = [input_file(file, folder, log) for file in inputs_in(corpus)]
    in_memory = any(file.rows is not None for file in training)
    if shape or columns:
        _refuse_mixed(training)
    names = tuple(file.name for file in training)
    request = make_request(
        names,
        output,
        base=base,
        budget=budget,
        against=[file.name for file in deciding],
        labels=labels,
        general=general,
        group=group,
        corpus=[file.name for file in searched],
        dimensions=dimensions,
        force=force,
        writer=writer,
        writer_model=writer_model,
        max_tokens=max_tokens,
        guide=guide,
        teacher=teacher,
        seed=seed,
        shape=None if in_memory else shape,
        columns=None if in_memory else columns,
        strict=strict,
        examples=examples,
        device=device,
        precision=precision,
        label_columns={file.name: file.label_column for file in training if file.label_column},
        lost={file.name: file.lost for file in training if file.lost},
        names=labels_of([*training, *deciding]),
    )
    refuse_bad_request(request)
    people = [read_answers(Path(name)) for name in request.ticks]
    with building_in(request.folder), running_on(device, precision), showing(shown):
        for file in (*training, *deciding, *searched):
            file.write()
        started = STARTED.get() or time.monotonic()
        result, winner = run(request, log, _routes_of_recipe(request, log))
        if people:
            result = with_ticks(result, people, request.folder, request.output, force=force)
        result = with_true_advice(result, request.folder, _seconds_left(request, started))
        return finish(request, result, winner)


def _routes_of_recipe(request: Request, log: Log) -> GivenRoutes | None:
    """The routes of a recipe, which the lab reads, if one is given instead of data."""
    if request.recipe is None:
        return None
    from sentloom.lab.fit_recipe import read_fit_recipe

    return read_fit_recipe(request.recipe, log)


def _refuse_mixed(files: Sequence[InputFile]) -> None:
    """Shape and columns describe either files, which are read later, or rows in memory, which have been read."""
    if len({file.rows is None for file in files}) > 1:
        fix = "read the files first: sentloom.read(path, columns=...)"
        raise InputError("fit", "`shape` and `columns` cannot be given for files and rows in memory together", "", fix)


def _by_label(
    data: Data, folder: Path, log: Log, columns: Mapping[str, str | int] | None, reading: Mapping[str, Any]
) -> list[InputFile]:
    """Rows in memory once for each of several label columns; a file as it is."""
    several = one_label_each(columns)
    if isinstance(data, str | Path) or len(several) == 1:
        return [input_file(data, folder, log, columns=columns, **reading)]
    return [
        input_file(data, folder, log, columns=roles, label_column=str(roles["label"]), **reading)
        for roles in several
        if roles
    ]


def _seconds_left(request: Request, started: float) -> float:
    """Of a time budget, and a few more; a budget in steps has no end."""
    seconds = None if request.recipe else request.parsed_budget.seconds
    return math.inf if seconds is None else max(LEAST_LEFT, started + seconds - time.monotonic())


def finish(request: Request, result: FitResult, winner: Path) -> Fit:
    """Write the report, and the model unless it was refused."""
    report = write_report(result, request.folder)
    if result.model:
        copy_encoder(winner, request.output, lambda encoder: model_card(result, facts_of(encoder)))
    model = request.output if result.model else None
    scores = {measure.name: measure for measure in result.measures}
    return Fit(result.verdict, result.reason, scores, model, report, result, request.device, request.precision)
