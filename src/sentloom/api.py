"""The public `fit`: runs, then renders."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.files import new_folder
from sentloom.fitting.fit import refuse_before, run
from sentloom.fitting.race import Log
from sentloom.fitting.request import Request
from sentloom.fitting.result import FitResult, Measure
from sentloom.locks import alone_in
from sentloom.report.fit_report import write_report
from sentloom.report.model_card import facts_of, model_card


@dataclass(frozen=True)
class Fit:
    """What came of it: scores by name, where the model lies (None: refused), and where the report lies."""

    verdict: str  # written, refused or forced
    reason: str
    scores: Mapping[str, Measure]
    model: Path | None
    report: Path
    result: FitResult = field(repr=False)


def fit(
    data: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    base: str | Path = "embedded",
    budget: str = "10m",
    against: str | Path | Sequence[str | Path] = (),
    general: str | Path | None = None,
    force: bool = False,
    synthesizer: str | Path | None = None,
    seed: int = 1,
    shape: Shape | str | None = None,
    columns: Mapping[str, str | int] | None = None,
    strict: bool = False,
    log: Log = lambda line: None,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it is better than its base on held-out rows.

    `budget` is a time ("10m") or a number of steps ("400steps") over all routes. `against` names sets or files that
    decide in place of the held-out rows; `general` is a data folder with STS-B, to watch general ability on. `force`
    writes the model whatever the gate says. `shape` and `columns` ({"anchor": "title", "positive": "body"}) say what
    the rows of all files are, where their own columns do not. Some unusable rows are left out and reported (5%, or ten
    if that is more); with `strict` one is enough to refuse the data. `tell` gets what is said on the way: `print` shows
    it. A call that was stopped continues where it was.
    """
    request = Request(
        data=_names(data),
        output=Path(output),
        base=str(base),
        budget=budget,
        against=_names(against),
        general=Path(general) if general else None,
        force=force,
        synthesizer=str(synthesizer) if synthesizer else None,
        seed=seed,
        shape=Shape(shape) if shape else None,
        columns=columns,
        strict=strict,
    )
    refuse_before(request)
    with alone_in(request.folder):
        result, winner = run(request, log)
        return finish(request, result, winner)


def _names(given: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))


def finish(request: Request, result: FitResult, winner: Path) -> Fit:
    """Write the report, and the model if it may be."""
    report = write_report(result, request.folder)
    if result.verdict != "refused":
        with new_folder(request.output) as part:
            shutil.copytree(winner, part, dirs_exist_ok=True)
            (part / "README.md").write_text(model_card(result, facts_of(Encoder.load(str(winner)))), "utf-8")
    model = None if result.verdict == "refused" else request.output
    return Fit(result.verdict, result.reason, {one.name: one for one in result.measures}, model, report, result)
