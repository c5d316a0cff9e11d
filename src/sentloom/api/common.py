"""What several public functions share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from accelerate import Accelerator

from sentloom.data.in_memory import Inputs
from sentloom.engine.plan import Plan
from sentloom.engine.rows import InputFile, input_file, inputs_in
from sentloom.engine.runner import STAGES
from sentloom.errors import InputError, SentloomError
from sentloom.evaluation.user_tasks import QUESTION, refuse_unscored
from sentloom.files import remove
from sentloom.fitting.request import Log
from sentloom.locks import LOCK, alone_in


def silent(line: str) -> None:
    """The log of a function that was not given any."""


def trackers_of(plans: Sequence[Plan]) -> tuple[str, ...]:
    """What the plans log to."""
    return tuple(dict.fromkeys(name for plan in plans for name in plan.trackers))


def scored_inputs(data: Inputs, folder: Path, log: Log) -> list[InputFile]:
    """Sets, files and rows in memory that models are scored on."""
    inputs = [input_file(source, folder, log, keep=(QUESTION,)) for source in inputs_in(data, scored=True)]
    for rows in (source.rows for source in inputs if source.rows is not None):
        refuse_unscored(None, rows.files[0], rows)
    return inputs


def refuse_options_in_memory(models: Sequence[object], **options: object) -> None:
    """Refuse options that would do nothing: they are for loading a model, and one of these is loaded already."""
    stated = [name for name, value in options.items() if value is not None]
    loaded = [model for model in models if not isinstance(model, str | Path | None)]
    if stated and loaded:
        problem = f"{' and '.join(stated)} cannot be changed for an {type(loaded[0]).__name__} in memory"
        raise InputError("model", problem, "", "give it when the model is loaded, or name the model's folder here")


@contextmanager
def building_in(folder: Path) -> Iterator[None]:
    """Hold an output folder; if the input is refused before any stage has started, nothing is left in it."""
    with alone_in(folder):
        new = _others_than_lock(folder) == []
        try:
            yield
        except SentloomError:
            if new and not _has_files(folder / STAGES):
                for path in _others_than_lock(folder):
                    remove(path)
            raise


def _others_than_lock(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != LOCK]


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*"))


@contextmanager
def training_in(folder: Path, accelerator: Accelerator, inputs: Sequence[InputFile]) -> Iterator[None]:
    """Hold a folder while something trains in it, and write the rows that were passed in memory."""
    try:
        with building_in(folder) if accelerator.is_main_process else nullcontext():
            for file in inputs if accelerator.is_main_process else ():
                file.write()
            accelerator.wait_for_everyone()
            yield
    finally:
        accelerator.end_training()
