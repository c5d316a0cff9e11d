"""Write an encoder in another format, and prove by golden vectors, or by its score, that it is still the same model.

It is scored on sets that the user names, else on the validation rows of its fit, else on everyday triplets.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.encoder.formats.format import ReadOnlyBackbone, Target, refuse_changes
from sentloom.encoder.formats.registry import format_of, target_named
from sentloom.encoder.golden import Agreement, Golden, agreement, make_golden, put_golden
from sentloom.encoder.saving import refuse_filled
from sentloom.encoder.tokens import ROLES, Role, prompt_for
from sentloom.errors import InputError, ModelError, option
from sentloom.evaluation.bench import main_scores
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import load_suites
from sentloom.evaluation.task import Task
from sentloom.export.card import CARD, export_card
from sentloom.files import new_folder
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.measures import metric_name
from sentloom.fitting.result import FitResult
from sentloom.fitting.stored import REPORT, stored_rows
from sentloom.fitting.tasks import held_out

Log = Callable[[str], None]


@dataclass(frozen=True)
class Scored:
    """The mean score before and after, and what it was measured on."""

    before: float
    after: float
    on: tuple[str, ...]
    metrics: tuple[str, ...]  # one for each name in `on`

    @property
    def lost(self) -> float:
        """Points lost."""
        return self.before - self.after

    def __str__(self) -> str:
        return f"{self.before:.2f} before, {self.after:.2f} after, {self.measured}"

    @property
    def measured(self) -> str:
        """What was measured, such as "nDCG@10 on faq.csv"."""
        every = ", ".join(
            f"{metric_name(metric)} on {name}" for metric, name in zip(self.metrics, self.on, strict=True)
        )
        return every if len(self.on) == 1 else f"mean of {every}"


@dataclass(frozen=True)
class Exported:
    """What was written, and how it was proven."""

    to: str
    folder: Path
    agreement: Agreement | None  # None for static vectors, which differ by design
    score: Scored | None  # None where vectors are the same
    dimensions: tuple[int, int]  # of the model's vectors, and of the exported ones


def export(
    encoder: Encoder,
    to: str,
    output: Path,
    *,
    against: Sequence[str] = (),
    data: Path | None = None,
    accept_loss: float | None = None,
    log: Log = lambda line: None,
) -> Exported:
    """Write, load and compare a folder, and only then move it to its name; raise a ModelError if it is refused.

    float32 targets reach a cosine of 0.99999 with the encoder on every golden text, in every role. 8-bit and static
    ones give other vectors: they are scored beside the encoder, and may lose at most `accept_loss` points; without it
    they are refused, whatever they lose. 8-bit ones also reach a cosine of 0.99 on average.
    """
    target = target_named(to)
    refuse_bad_loss(accept_loss)
    if isinstance(encoder.backbone, ReadOnlyBackbone):
        refuse_changes(encoder.backbone.name)
    if encoder.precision != "fp32":
        problem = f"the encoder runs in {encoder.precision}, and exports are compared with its vectors in fp32"
        raise InputError("precision", problem, "fp32", "load the encoder without a precision")
    _refuse_models(output)
    with new_folder(output) as folder:
        log(f"Writing {to} ...")
        target.write(encoder, folder)
        log("Comparing its vectors with the model's ..." if target.required else "Scoring it beside the model ...")
        exported = Encoder.load(folder, device="cpu", precision="fp32")
        closeness = _prove(encoder, exported, to, target, folder)
        if target.note:
            log(target.note)
        score = _score(encoder, exported, judging_tasks(encoder, against, data)) if target.lossy else None
        done = Exported(to, output, closeness, score, (encoder.dimension, exported.dimension))
        _refuse_loss(done, accept_loss)
        (folder / CARD).write_text(export_card(encoder, done), "utf-8", "replace")
    return done


def refuse_bad_loss(points: float | None) -> None:
    """Refuse a loss that is not a number of points, 0 or more."""
    if points is not None and not 0 <= points < math.inf:
        fix = "give the most points that you can do without"
        raise InputError(option("accept_loss"), f"found {points:g}", "a number of 0 or more", fix)


def _refuse_models(output: Path) -> None:
    """Refuse to replace a model that can be trained, such as the one to export; an earlier export is replaced."""
    refuse_filled(output)
    if (output / "config.json").is_file() and format_of(output).trainable:
        problem = "it has a model, which an export may not replace"
        raise InputError(str(output), problem, "a new name or an earlier export", "choose another folder")


def _prove(encoder: Encoder, exported: Encoder, to: str, target: Target, folder: Path) -> Agreement | None:
    """Compare golden vectors in every role that has a prompt of its own, and write them into the folder."""
    golden = make_golden(encoder if target.required else exported)
    if target.required is None:
        put_golden(golden, folder)
        return None
    golden = replace(golden, required=target.required)
    in_roles = [_in_role(encoder, exported, golden, role) for role in _other_roles(encoder)]
    worst = min([golden.check(exported), *in_roles], key=golden.reached)
    if not golden.holds(worst):
        problem = f"its vectors are not the model's: the mean cosine is {worst.mean:.6f}, the least {worst.least:.6f}"
        problem += f" (for {worst.furthest[:40]!r}), so nothing was written"
        expected = f"{'a mean' if target.lossy else 'a cosine'} of at least {target.required}"
        expected += "" if target.lossy else " for every text"
        raise ModelError(f"export to {to}", problem, expected, "use another target")
    put_golden(golden, folder)
    return worst


def _other_roles(encoder: Encoder) -> list[Role]:
    """The roles whose prompt differs from the symmetric one."""
    symmetric = prompt_for(encoder.prompts, "symmetric")
    return [role for role in ROLES if prompt_for(encoder.prompts, role) != symmetric]


def _in_role(encoder: Encoder, exported: Encoder, golden: Golden, role: Role) -> Agreement:
    expected, vectors = (model.encode(golden.texts, role=role) for model in (encoder, exported))
    return agreement(golden.texts, vectors, expected)


def _score(encoder: Encoder, exported: Encoder, tasks: Sequence[Task]) -> Scored:
    before, after = (mean_score(model, tasks) for model in (encoder, exported))
    return Scored(before, after, tuple(task.name for task in tasks), tuple(task.main for task in tasks))


def mean_score(encoder: Encoder, tasks: Sequence[Task]) -> float:
    """The mean of the main scores, in points."""
    scores = [score.value for score in main_scores(encoder, tasks, show_progress=True)]
    return sum(scores) / len(scores)


def _refuse_loss(done: Exported, accepted: float | None) -> None:
    """Refuse vectors that are not the model's and lose more points than were accepted."""
    if done.score is None or (accepted is not None and done.score.lost <= accepted):
        return
    lost = max(done.score.lost, 0.0)
    problem = f"its vectors are not the model's: it loses {lost:.2f} points ({done.score})"
    if done.dimensions[0] != done.dimensions[1]:
        problem += " and has {1} dimensions instead of {0}".format(*done.dimensions)
    enough = option("accept_loss", math.ceil(100 * lost) / 100)
    fix = f"use onnx or ctranslate2, which lose nothing; {enough} accepts this loss"
    expected = "the same vectors, or an accepted loss" if accepted is None else f"at most {accepted:g} points lost"
    raise ModelError(f"export to {done.to}", f"{problem}, so nothing was written", expected, fix)


def judging_tasks(encoder: Encoder, against: Sequence[str] = (), data: Path | None = None) -> list[Task]:
    """The named sets; if none is named, the validation rows beside a fitted model, or else the everyday triplets."""
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
        for number, datasets in stored.items()
        for rows in datasets
    ]
    labelled = [part for part in parts if part.labelled]
    return [task for part in labelled or parts for task in part.tasks]


def _input_names(fit: Path) -> Mapping[int, str]:
    """What the inputs of a fit are called, by number from 1, without their folders."""
    report = fit / REPORT
    sources = FitResult.read(report).sources if report.is_file() else ()
    return {number: Path(source.name).name for number, source in enumerate(sources, start=1)}
