"""`evaluate` and `shrink`."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from sentloom.api.common import refuse_options_in_memory, scored_inputs, silent, training_in
from sentloom.arguments import typed
from sentloom.data.corpus.opening import open_data
from sentloom.data.in_memory import Data, Inputs, is_table
from sentloom.data.layout import Columns, as_columns
from sentloom.data.shapes import Shape, as_shape
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.engine.runner import start_accelerator
from sentloom.evaluation.evaluate import Evaluation, Models, Scoring, labelled, open_memory
from sentloom.evaluation.evaluate import evaluate as score_models
from sentloom.export.shrink import ShrinkRequest, Shrunk, refuse_bad_output
from sentloom.export.shrink import shrink as train_student
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log
from sentloom.locks import in_turn
from sentloom.report import score_files


@typed
def evaluate(
    models: Annotated[Models, "the name of a model or an Encoder, or a list or dict of these"],
    suite: Inputs = "sts",
    *,
    data: str | Path | None = None,
    aggregation: str = "all",
    fast: bool = False,
    hidden: int = 0,
    unchecked: bool = False,
    pooling: str | None = None,
    cache: str | Path | None = None,
    cache_size: float = 2.0,
    output: str | Path | Sequence[str | Path] = (),
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
    show_progress: bool = False,
) -> Evaluation:
    """Score models side by side on suites, or on data of your own, with confidence intervals.

    `models` are names or Encoders, or a dict of labels with one or a list of them (seeds of one model). `suite` names
    suites (sts, transfer, sentglue, multilingual, domain, afs), one of their sets (STS-B/dev) or a file
    (retrieval:FILE), or is data whose shape says what is scored: pairs are searched, scored pairs correlated, labelled
    texts classified.
    `data` is the folder of the suites; without it they come from the hub. `hidden` and `fast` concern the classifiers
    of transfer sets; `unchecked` also scores sets whose counts differ from the published ones. Vectors and scores are
    cached in `cache`, up to `cache_size` GB (0 turns caching off). `output` are files for the scores: .json, .csv,
    .md or .png.

    The other models are compared with the first one: `.differences`, with intervals. What could not be scored because
    its data is not here, or not the published set, is in `.not_scored`; it is an error if that is everything.

    >>> faq = [("Where is the canteen?", "On the ground floor."), ("Is it open?", "Open from noon until two.")]
    >>> evaluate("embedded", faq).scores["embedded"]
    {'the list': 100.0}
    """
    targets = [Path(path) for path in as_names(output)]
    for target in targets:
        score_files.check_scores_file(target)
    refuse_options_in_memory(
        [model for seeds in labelled(models).values() for model in seeds],
        pooling=pooling,
        device=device,
        precision=precision,
    )
    with running_on(device, precision):
        evaluation = score_models(
            models,
            _suites(suite),
            Scoring(Path(data) if data else None, pooling, aggregation, fast, hidden, checked=not unchecked),
            memory=open_memory(Path(cache) if cache else None, cache_size * 1e9) if cache_size else None,
            log=log,
            show_progress=show_progress,
        )
    with ExitStack() as turns:  # two processes must not mix their files
        for target in sorted({*targets}):
            turns.enter_context(in_turn(target, log))
        for target in targets:
            score_files.write_scores(target, evaluation.models, evaluation.suites)
    return evaluation


def _suites(suite: Any) -> list[Any]:
    """Names and data; a list of tuples or dicts is one set of data."""
    if not isinstance(suite, list | tuple):
        return [suite]
    return [*suite] if any(isinstance(element, str | Path) or is_table(element) for element in suite) else [suite]


@typed
def shrink(
    model: str | Path,
    output: str | Path,
    texts: Data = "embedded",
    *,
    layers: int | None = None,
    student: str | Path | None = None,
    against: Inputs = (),
    data: str | Path | None = None,
    epochs: float = 1.0,
    steps: int | None = None,
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns = None,
    seed: int = 1,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> Shrunk:
    """Train a smaller student that mimics an encoder on raw text, and measure what that costs in score.

    The student starts from `layers` of the model's own layers, evenly spaced, by default half of them; a decoder is
    dropped, and a decoder-first model gets a student with mean pooling. With `student`, another model is trained
    instead, with a projection if its vectors have other dimensions. `texts` are of any kind, by default the
    docstrings of installed packages. Both are scored on `against`, sets (from the folder `data`), files or rows in
    memory, whose sentences are left out of the training; without any, on how they rank pairs of held-out texts.
    `pooling` is the model's, if it states none. The same call resumes.

    >>> texts = [f"Ticket {n} costs {3 * n} euros and is valid on day {n % 7}." for n in range(500)]
    >>> done = shrink("embedded", "small", texts, layers=1, steps=2)
    >>> done.encoder.backbone.num_layers, done.total.name, done.total.before
    (1, 'agreement with the teacher', 100.0)
    """
    request = ShrinkRequest(
        str(model), Path(output), layers, str(student) if student else None, pooling, epochs, steps, seed
    )
    refuse_bad_output(request)
    dataset = open_data(texts, shape=as_shape(shape), columns=as_columns(columns))
    deciding = scored_inputs(against, request.folder, log)
    with running_on(device, precision):
        accelerator = start_accelerator((), request.folder)
        with training_in(request.folder, accelerator, deciding):
            said = log if accelerator.is_main_process else silent
            names = [file.name for file in deciding]
            return train_student(request, dataset, names, Path(data) if data else None, accelerator, said)
