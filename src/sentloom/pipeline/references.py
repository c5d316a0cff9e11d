"""`stage:NAME`: what an earlier stage of the same recipe made, as the model or the data of a later one."""

from collections.abc import Mapping

from sentloom.pipeline.makers import MODEL_MAKERS, Synthesize
from sentloom.pipeline.yaml_source import one_of, show
from sentloom.writing.synthesizer import Synthesizer

PREFIX = "stage:"
PAIRS = "/pairs"  # behind a stage's name: the rows with a good positive alone


def named_stage(value: str) -> str | None:
    """The stage that a value names; None if it is a file, a folder or a name of another kind."""
    return value.removeprefix(PREFIX).removesuffix(PAIRS) if value.startswith(PREFIX) else None


def models_for(method: str, earlier: Mapping[str, str]) -> list[str]:
    """What a making stage may name as its model; `earlier` stages are names with their methods."""
    fitting = {Synthesizer.NAME} if method == Synthesize.NAME else set(MODEL_MAKERS)
    return [PREFIX + name for name, made_by in earlier.items() if made_by in fitting]


def data_of(earlier: Mapping[str, str]) -> list[str]:
    """What a stage may name as its data."""
    made = [PREFIX + name for name, made_by in earlier.items() if made_by == Synthesize.NAME]
    return [name + part for name in made for part in ("", PAIRS)]


def what_is_wrong(
    value: str, known: list[str], earlier: Mapping[str, str], all_names: set[str], instead: str
) -> tuple[str, str] | None:
    """Found and wanted of a reference; None if it is one of the known. `instead` says what else could stand there."""
    name = named_stage(value)
    if name is None or value in known:
        return None
    wrong = ""
    if name in earlier:
        wrong = f", a stage of the method {earlier[name]}"
    elif name in all_names:
        wrong = ", a stage that does not come before this one"
    return show(value) + wrong, one_of(value, known) if known else f"{instead}: no stage before makes one"
