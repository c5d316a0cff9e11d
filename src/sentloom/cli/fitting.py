"""The command `fit`."""

import inspect
import time
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from sentloom.cli.common import resumable, show, unwrapped
from sentloom.data.shapes import Shape
from sentloom.fitting.clock import STARTED
from sentloom.fitting.options import OPTIONS, Option

NOT_BETTER = 3  # the exit code of a fit whose model does not beat its base


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every option of `fit`."""
    own = [known for known in inspect.signature(command).parameters.values() if known.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=option.default if option.is_flag else None,
            annotation=_typed(option),
        )
        for option in OPTIONS.values()
    ]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    return command


def _typed(option: Option) -> Any:
    """The type of an option of the command, and its help."""
    flag = option.flag
    if option.is_flag:
        only = f"--{flag}" if option.default is False else f" /--no-{flag}"  # the one that changes something
        return Annotated[bool, typer.Option(only, show_default=False, help=option.described)]
    more = " Repeatable." if option.is_list else ""
    said = typer.Option(f"--{flag}", metavar=option.metavar, min=option.least, help=f"{option.described}{more}")
    return Annotated[_command_type(option) | None, said]


def _command_type(option: Option) -> Any:
    """Text that `Option.read` takes, unless the command line can tell more."""
    kind, *_ = [kind for kind in get_args(option.kind) if kind is not NoneType] or [option.kind]
    if option.is_list:
        return list[str]
    return kind if option.choices or kind in (int, float, Shape) else str


@with_options
def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="One or more files or hub names, of any shape: raw text, labelled text, pairs, scored pairs, "
            "triplets, NLI, translations. Or one recipe (.yaml), whose variants race.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model folder to write. Everything else goes to MODEL.fit."
        ),
    ],
    **options: Any,
) -> None:
    """Fit an encoder to your data: try the methods it supports, and write the best one if it beats its base.

    The exit code is 3 if nothing beats the base. Run the same command again to resume; finished work is reused.
    """
    show(f"Fitting an encoder to {', '.join(data)}. Everything besides the model goes to {output}.fit")

    from sentloom.fitting.inputs import read_inputs, sources_of  # like the next, without PyTorch, which takes seconds
    from sentloom.fitting.request import make_request, refuse_bad_request

    STARTED.set(time.monotonic())
    request = make_request(data, output, {name: value for name, value in options.items() if _is_given(name, value)})
    refuse_bad_request(request)
    inputs = None if request.recipe else read_inputs(sources_of(request), request, show)
    show("Loading PyTorch and Transformers ...")

    from sentloom.api.fitting import fit_request
    from sentloom.report.fit_tables import fit_summary
    from sentloom.report.formatting import caution, next_steps

    with resumable():
        done = fit_request(request, show, shown=True, inputs=inputs)
    show("", fit_summary(done.result), "")
    if done.model:
        show(
            f"written: {done.model}",
            f'  use it:  SentenceTransformer("{done.model}")',
            *filter(None, [caution(done.result)]),
            *(unwrapped(f"  {what}:  {command}") for what, command in next_steps(done.result).items()),
        )
    show(f"report:  {done.report}")
    if done.model is None:
        show("No model was written. Use --force to write it anyway.")
        if output.exists():
            show(f"{output} is still the model of an earlier call.")
    show(done.result.verdict_line)
    if done.model is None:
        raise typer.Exit(NOT_BETTER)


def _is_given(name: str, value: Any) -> bool:
    option = OPTIONS[name]
    return value != option.default if option.is_flag else value is not None and value != []
