"""`fit` and its result."""

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from inspect import Parameter
from pathlib import Path
from textwrap import fill
from typing import Any, ParamSpec

from sentloom.api.common import building_in, scored_inputs, silent
from sentloom.api.predicting import Predictor
from sentloom.arguments import plain_type, typed
from sentloom.classify.classifier import Prediction, load, save
from sentloom.data.in_memory import Data, Inputs
from sentloom.data.layout import one_label_each
from sentloom.data.limits import FITTING, STRICT
from sentloom.data.shapes import TITLE
from sentloom.encoder import Encoder
from sentloom.encoder.device import Device, running_on
from sentloom.encoder.system import VECTORS_ALONE
from sentloom.engine.rows import InputFile, input_file, inputs_in, labelled
from sentloom.engine.runner import copy_encoder
from sentloom.errors import InputError
from sentloom.fitting.clock import STARTED
from sentloom.fitting.fit import Done, run
from sentloom.fitting.inputs import ID_COLUMNS, LANGUAGE_COLUMNS, FitInput
from sentloom.fitting.measures import Measure
from sentloom.fitting.options import OPTIONS, Option, Options, read_options
from sentloom.fitting.request import Log, Request, make_request, refuse_bad_request
from sentloom.fitting.result import FitResult
from sentloom.fitting.routes import GivenRoutes
from sentloom.fitting.system import system_of
from sentloom.progress import is_watched, note, showing
from sentloom.report.fit_tables import fit_html
from sentloom.report.model_card import facts_of, model_card
from sentloom.report.page import write_report
from sentloom.ticking.answers import read_answers
from sentloom.ticking.verdict import with_ticks, with_true_advice

P = ParamSpec("P")
LEAST_LEFT = 5.0  # seconds to find out whether there is something to tick, whatever the budget

TAKEN: dict[str, Any] = {"rows": Inputs, "device": Device}  # types of options whose modules take a while to import


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

    @cached_property
    def predictor(self) -> Predictor:
        """The encoder with its classifiers; only for data with labels."""
        return Predictor(self.encoder, load(Path(self.model or self.result.base), self.encoder.dimension))

    def predict(self, texts: Sequence[str], *, column: str | None = None) -> list[Prediction]:
        """The label of each text, its probability, and whether to leave the text to people (`Predictor.predict`)."""
        return self.predictor.predict(texts, column=column)

    def _repr_html_(self) -> str:
        return fit_html(self.result, self.model, self.report)


def takes_options(function: Callable[P, Fit]) -> Callable[P, Fit]:
    """The function with a parameter for every option of `fit`, and a line about it in the docstring.

    Like a parameter that was left out, None is not passed on.
    """
    data, output, log, show_progress, _ = inspect.signature(function, eval_str=True).parameters.values()
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=_python_type(option))
        for option in OPTIONS.values()
    ]
    signature = inspect.Signature([data, output, *options, log, show_progress], return_annotation=Fit)
    function.__signature__ = signature  # type: ignore[attr-defined]
    checked = typed(function)

    @wraps(function)
    def given(*args: P.args, **kwargs: P.kwargs) -> Fit:
        return checked(*args, **{name: value for name, value in kwargs.items() if value is not None})  # type: ignore[arg-type]

    plain = [
        parameter.replace(annotation=plain_type(parameter.annotation)) for parameter in signature.parameters.values()
    ]
    given.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
    text, example, examples = str(function.__doc__).partition("    >>> ")
    given.__doc__ = f"{text}{_list_of_options()}\n\n{example}{examples}"
    return given


def _python_type(option: Option) -> Any:
    taken = TAKEN.get(option.takes) if isinstance(option.takes, str) else option.takes
    kind = taken or option.kind
    return kind | None if option.default is None else kind


def _list_of_options() -> str:
    return "\n".join(
        fill(f"{option.name}: {option.in_python}", 116, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for option in OPTIONS.values()
    )


@takes_options
def fit(
    data: Inputs,
    output: str | Path,
    *,
    log: Log | None = None,
    show_progress: bool | None = None,
    **options: Any,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it beats its base on held-out rows.

    `data` is a path, a name, or rows in memory; a list of Paths or tables is several inputs. A recipe (.yaml) races its
    own variants, and sets the base, the seed and the lengths itself. A list of strings is a list of texts, unless every
    one of them is a file. Messages and progress are shown in a terminal and in a notebook; `show_progress` shows them
    anywhere, or nowhere if it is False. `log` is a function that receives the messages instead. The same call resumes a
    fit that was stopped. The options, where what may be repeated is a list:

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="2steps", force=True)
    >>> done.verdict, done.model.name, done.encoder.similarity("ticket 7", "ticket 7") > 0.99
    ('no difference shown', 'tickets', True)
    """
    shown = is_watched() if show_progress is None else show_progress
    log = log or (note if shown else silent)
    folder = Request.folder_of(Path(output))
    deciding = scored_inputs(options.get("against", ()), folder, log)
    searched = [input_file(file, folder, log) for file in inputs_in(options.get("corpus", ()))]
    options |= {"against": [file.name for file in deciding], "corpus": [file.name for file in searched]}
    training = _read(data, Options(**read_options(options)), folder, log)
    if any(file.rows is not None for file in training):  # which have been read
        options = {name: value for name, value in options.items() if name not in ("shape", "columns")}
    request = make_request([file.name for file in training], output, options, labelled([*training, *deciding]))
    refuse_bad_request(request)
    return fit_request(request, log, shown=shown, files=(*training, *deciding, *searched))


def fit_request(
    request: Request,
    log: Log,
    *,
    shown: bool,
    files: Sequence[InputFile] = (),
    inputs: Sequence[FitInput] | None = None,
) -> Fit:
    """Do what a request asks for. `files` are rows in memory, and `inputs` what was read already; None: nothing was."""
    people = [read_answers(Path(name)) for name in request.labels]
    with building_in(request.folder), running_on(request.device, request.precision), showing(shown):
        for file in files:
            file.write()
        started = STARTED.get() or time.monotonic()
        done = run(request, log, _routes_of_recipe(request, log), inputs)
        result = done.result
        if people:
            result = with_ticks(result, people, request.folder, request.output, force=request.force)
        result = with_true_advice(result, request.folder, _seconds_left(request, started))
        return finish(request, replace(done, result=result))


def _read(data: Inputs, options: Options, folder: Path, log: Log) -> list[InputFile]:
    """Files as they are, and rows in memory, once for each of several label columns."""
    keep = (TITLE, *ID_COLUMNS, *LANGUAGE_COLUMNS, *options.group)
    reading = {"shape": options.shape, "allow": STRICT if options.strict else FITTING, "keep": keep}
    training = [file for source in inputs_in(data) for file in _by_label(source, folder, log, options.columns, reading)]
    if options.shape or options.columns:
        _refuse_mixed(training)
    return training


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


def finish(request: Request, done: Done) -> Fit:
    """Write the report, and the model, unless it was refused, with its classifiers."""
    result = done.result
    report = write_report(result, request.folder)
    if result.model:
        source: Path | Encoder = Encoder.load(result.base) if result.of_base else done.winner
        system = system_of(result.system) if result.system else VECTORS_ALONE
        more = partial(save, done.classifiers)
        copy_encoder(source, request.output, lambda encoder: model_card(result, facts_of(encoder)), system, more)
    model = request.output if result.model else None
    scores = {measure.name: measure for measure in result.measures}
    return Fit(result.verdict, result.reason, scores, model, report, result, request.device, request.precision)
