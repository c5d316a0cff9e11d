"""What a plan needs that is not on this machine, found without the network as long as files or models are missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from sentloom.data.inputs import hub_name, twin_files
from sentloom.encoder.locate import catalogue_entry, refuse_unwritten
from sentloom.engine.artifacts import named_stage
from sentloom.engine.plan import Plan
from sentloom.engine.stages import BASE
from sentloom.engine.stages.train import stated_pooling
from sentloom.errors import MissingPart, Problem, RecipeError
from sentloom.evaluation.models import encoder_of, named_model
from sentloom.evaluation.set_source import NoCopy, SetSource
from sentloom.evaluation.suites import OWN, find_task, is_set, split_score
from sentloom.files import at_its_name, home_expanded
from sentloom.writing.endpoint import is_endpoint

RELATIVE = "a path from the recipe's folder or the working folder"


@dataclass(frozen=True)
class Need:
    """A model, data or a set that is not here: to be fetched from the hub, or to be put in place by the user."""

    what: str  # "base", "data of nli"
    name: str
    on_hub: bool


def needs(plan: Plan) -> list[Need]:
    """Everything that is missing. Sets on the hub are listed if anything else is missing, and tried otherwise."""
    absent = _absent(plan)
    hub = dict.fromkeys(name for name, folder in _sets(plan) if folder is None and is_set(name))
    return absent + [Need("set", name, on_hub=True) for name in hub if absent or not _at_hand(name)]


def refuse_missing(plans: Sequence[Plan], made_in: Path | None = None) -> None:
    """Report all files and folders that are not there, each with its place in the recipe.

    Those in the folder `made_in` may be made by an earlier plan.
    """
    missing = [
        Problem(*plan.places.get(need.name, (need.what, "")), f'there is no file or folder "{need.name}"', RELATIVE)
        for plan in plans
        for need in _absent(plan)
        if not need.on_hub and not (made_in and is_in(made_in, need.name))
    ]
    if missing:
        raise RecipeError(list(dict.fromkeys(missing)), "put it there, or correct the path")


def is_in(folder: Path, name: str) -> bool:
    """Whether a path is below a folder."""
    return home_expanded(name).resolve().is_relative_to(folder.resolve())


def _absent(plan: Plan) -> list[Need]:
    """The models, data and folders that are not here, without trying the sets on the hub."""
    sets = list(dict.fromkeys(_sets(plan)))
    folders = dict.fromkeys(folder for _, folder in sets if folder)
    absent = [*_models(plan), *_data(plan)]
    absent += [Need("data folder of the sets", folder, on_hub=False) for folder in folders if not Path(folder).is_dir()]
    absent += [Need("file to score on", name, on_hub=False) for name, _ in sets if _is_absent_file(name)]
    return list(dict.fromkeys(absent))


def _models(plan: Plan) -> Iterator[Need]:
    named = [("base", encoder_of(plan.base) if plan.base else None)]
    for stage in plan.stages:
        named += [(f"model of {stage.name}", model) for model in (*stage.models(), *stage.makers())]
        named += [(f"{key} of {stage.name}", model) for key, model in stage.other_models()]
    for what, name in named:
        if (
            name
            and name != BASE
            and catalogue_entry(name) is None
            and not is_endpoint(name)
            and named_stage(name) is None
            and not at_its_name(home_expanded(name)).is_dir()
        ):
            refuse_unwritten(name)
            match = hub_name(name)
            on_hub = match is not None and match[2] is None and match[4] is None  # a data set may have more parts
            if not (match and on_hub and _cached("models", match[1])):
                yield Need(what, name, on_hub)


def _data(plan: Plan) -> Iterator[Need]:
    baseline = named_model(plan.base) if plan.base else None
    read = [(f"data of {stage.name}", name) for stage in plan.stages for name in stage.sources]
    for what, name in [*(("data of base", file) for file in (baseline.files if baseline else ())), *read]:
        here = Path(name).exists() or name.startswith("embedded") or twin_files(name) is not None
        if not here and named_stage(name) is None:
            match = hub_name(name)
            if match is None or not _cached("datasets", match[1]):
                yield Need(what, name, match is not None)


def _sets(plan: Plan) -> Iterator[tuple[str, str | None]]:
    if plan.select:
        yield plan.select.on, plan.select.data
    if plan.evaluate:
        yield from ((split_score(name)[0], plan.evaluate.data) for name in plan.evaluate.sets)


def _is_absent_file(name: str) -> bool:
    own = OWN.fullmatch(name)
    file = own["file"] if own else name
    return not is_set(name) and not file.startswith("embedded") and bool(Path(file).suffix) and not Path(file).exists()


def _cached(kind: str, repository: str) -> bool:
    return (Path(constants.HF_HUB_CACHE) / f"{kind}--{repository.replace('/', '--')}").is_dir()


def _at_hand(name: str) -> bool:
    try:
        find_task(name, SetSource(checked=False))
    except NoCopy:
        raise
    except MissingPart:
        return False
    return True


@dataclass(frozen=True)
class PoolingChange:
    """A stage (None: scoring the base) that gives an encoder another pooling than the one it has."""

    stage: str | None
    before: str
    after: str

    def __str__(self) -> str:
        """One line for the user."""
        if self.stage is None:
            return f"the base is scored with {self.after} pooling, not with its own ({self.before})"
        return f"{self.stage}: {self.note}"

    @property
    def note(self) -> str:
        """What the stage does, without its name."""
        return f"changes the encoder's pooling from {self.before} to {self.after}, as the recipe says"


def pooling_changes(plan: Plan) -> Iterator[PoolingChange]:
    """Every change of pooling that a plan makes; a method that would need an unstated one is refused."""
    assert plan.base is not None
    own = stated_pooling(plan.base)
    if not plan.training and own is not None and plan.pooling not in (None, own):
        yield PoolingChange(None, own, str(plan.pooling))
    for stage in plan.stages:
        if stage.PRODUCES == "encoder":
            after = stage.pooling_after(own)
            if own not in (None, after):
                yield PoolingChange(stage.name, str(own), str(after))
            own = after
