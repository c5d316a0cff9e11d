"""`evaluate`."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from sentloom.api.common import refuse_options_in_memory, silent
from sentloom.arguments import typed
from sentloom.data.in_memory import Inputs, is_table
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.evaluation.evaluate import Evaluation, Models, labelled, open_memory
from sentloom.evaluation.evaluate import evaluate as score_models
from sentloom.fitting.request import Log, strings
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
    targets = [Path(one) for one in strings(output)]
    for target in targets:
        score_files.check_scores_file(target)
    refuse_options_in_memory(
        [one for seeds in labelled(models).values() for one in seeds],
        pooling=pooling,
        device=device,
        precision=precision,
    )
    with running_on(device, precision):
        found = score_models(
            models,
            _suites(suite),
            data=data,
            pooling=pooling,
            aggregation=aggregation,
            fast=fast,
            hidden=hidden,
            checked=not unchecked,
            memory=open_memory(Path(cache) if cache else None, cache_size * 1e9) if cache_size else None,
            log=log,
            show_progress=show_progress,
        )
    with ExitStack() as turns:  # two processes must not mix their files
        for target in sorted({*targets}):
            turns.enter_context(in_turn(target, log))
        for target in targets:
            score_files.write_scores(target, found.models, found.suites)
    return found


def _suites(suite: Any) -> list[Any]:
    """Names and data; a list of tuples or dicts is one set of data."""
    if not isinstance(suite, list | tuple):
        return [suite]
    return [*suite] if any(isinstance(one, str | Path) or is_table(one) for one in suite) else [suite]
