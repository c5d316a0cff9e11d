"""What a plan needs that is not on this machine, found without the network as long as files or models are missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from sentloom.data.inputs import hub_name, twin_files
from sentloom.errors import MissingPart
from sentloom.evaluation.suites.catalog import OWN, find_task, is_set
from sentloom.evaluation.suites.set_source import NO_COPY, SetSource
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.references import named_stage


@dataclass(frozen=True)
class Need:
    """A model, data or a set that is not here: to be fetched from the hub, or to be put in place by the user."""

    what: str  # "base", "data of nli"
    name: str
    on_hub: bool


def needs(plan: Plan) -> list[Need]:
    """All that is missing. Sets on the hub are named if anything else is missing, otherwise they are tried."""
    absent = list(dict.fromkeys([*_models(plan), *_data(plan)]))
    sets = list(dict.fromkeys(_sets(plan)))
    folders = [Need("data folder of the sets", folder, on_hub=False) for _, folder in sets if folder]
    absent += [one for one in dict.fromkeys(folders) if not Path(one.name).is_dir()]
    absent += [Need("file to score on", name, on_hub=False) for name, _ in sets if _is_absent_file(name)]
    hub = [name for name, folder in sets if folder is None and is_set(name)]
    return absent + [Need("set", name, on_hub=True) for name in hub if absent or not _at_hand(name)]


def _models(plan: Plan) -> Iterator[Need]:
    named = [("base", plan.base)]
    for stage in plan.stages:
        named += [(f"model of {stage.name}", model) for model in stage.models()]
        named += [(f"{key} of {stage.name}", model) for key, model in stage.other_models().items()]
    for what, name in named:
        if name and name != "embedded" and named_stage(name) is None and not Path(name).expanduser().is_dir():
            match = hub_name(name)
            on_hub = match is not None and match[2] is None and match[4] is None  # a data set may have more parts
            if not (match and on_hub and _cached("models", match[1])):
                yield Need(what, name, on_hub)


def _data(plan: Plan) -> Iterator[Need]:
    for stage in plan.stages:
        for name in stage.sources:
            here = Path(name).exists() or name.startswith("embedded") or twin_files(name) is not None
            if not here and named_stage(name) is None:
                match = hub_name(name)
                if match is None or not _cached("datasets", match[1]):
                    yield Need(f"data of {stage.name}", name, match is not None)


def _sets(plan: Plan) -> Iterator[tuple[str, str | None]]:
    if plan.select:
        yield plan.select.on, plan.select.data
    if plan.evaluate:
        yield from ((name, plan.evaluate.data) for name in plan.evaluate.sets)


def _is_absent_file(name: str) -> bool:
    own = OWN.fullmatch(name)
    file = own["file"] if own else name
    return not is_set(name) and not file.startswith("embedded") and bool(Path(file).suffix) and not Path(file).exists()


def _cached(kind: str, repository: str) -> bool:
    return (Path(constants.HF_HUB_CACHE) / f"{kind}--{repository.replace('/', '--')}").is_dir()


def _at_hand(name: str) -> bool:
    try:
        find_task(name, SetSource(checked=False))
    except MissingPart as error:
        if error.problem == NO_COPY:
            raise
        return False
    return True
