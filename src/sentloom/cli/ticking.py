"""The command `tick`."""

import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import DeviceOption, PrecisionOption, show
from sentloom.errors import MissingPart

if TYPE_CHECKING:
    from sentloom.ticking.session import Session
    from sentloom.ticking.verdict import FitQuestions


def tick(
    fit: Annotated[Path, typer.Argument(metavar="MODEL.fit", help="The folder of a fit, beside its model.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where answers are saved. By default MODEL.fit/ticks.jsonl."
        ),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Answers of somebody else that count as well; repeatable."),
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Ask in the terminal instead of on a page.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 picks a free one.")] = 0,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Say which of two search results is better, the base's or the fitted model's, without knowing whose is whose.

    About 30 answers decide whether the fitted model is better. Every answer is saved at once. Run the same command
    again to continue.
    """
    show(f"Looking for queries on which the models of {fit} disagree ...")
    from sentloom.encoder.device import running_on
    from sentloom.ticking.answers import open_answers, read_answers
    from sentloom.ticking.session import Session
    from sentloom.ticking.verdict import find_questions

    folder = fit if fit.suffix == ".fit" else fit.with_name(f"{fit.name}.fit")
    others = [read_answers(path) for path in labels or ()]
    if not terminal:
        _require_server()
    with running_on(device, precision):
        questions = find_questions(folder, others)
    path = output or folder / "ticks.jsonl"
    with open_answers(path, questions.header) as file:
        session = Session(questions.questions, file, questions.queries, others)
        with suppress(KeyboardInterrupt):
            _ask(session, terminal, port)
    _report(session, questions, [path, *(labels or ())])


def _require_server() -> None:
    try:
        import sentloom.ticking.app  # noqa: F401 - or the extra is missing
    except ImportError as error:
        fix = "pip install 'sentloom[serve]', or answer in the terminal: --terminal"
        raise MissingPart("tick", f"{error.name} is not installed", "", fix) from None


def _ask(session: "Session", terminal: bool, port: int) -> None:
    if terminal:
        from sentloom.ticking.session import ask

        ask(session, _typed(), show)
        return
    from sentloom.ticking.app import serve

    serve(session, _announce, port)


def _typed() -> Iterator[str]:
    with suppress(EOFError):
        while True:
            yield input("> ") if sys.stdin.isatty() else _next_line()


def _next_line() -> str:
    if line := sys.stdin.readline():
        return line
    raise EOFError


def _announce(address: str) -> None:
    show(f"Answer on this page (this machine only): {address}", "Every answer is saved at once. Stop with Ctrl-C.")
    if sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        webbrowser.open(address)


def _report(session: "Session", questions: "FitQuestions", files: list[Path]) -> None:
    """What the answers show, and how they become part of the fit."""
    from sentloom.report.formatting import agreement_line

    ruling = session.ruling
    answers = f"{ruling.ticks.answered} queries answered, {ruling.ticks.skipped} skipped"
    show("", f"{answers}: {', '.join(map(str, files))}", ruling.gate.reason)
    if line := agreement_line(ruling.ticks):
        show(line)
    if ruling.decided is None:
        show("Run the same command again to continue.")
    else:
        options = " ".join(f"--labels {shlex.quote(str(path))}" for path in files)
        what = (
            "To let the answers decide"
            if questions.label_free
            else "Labels decide this fit. To show the answers beside them"
        )
        show(f"{what}, run the fit again; nothing is trained again:", f"  {questions.command} {options}")
    show(ruling.verdict_line)
