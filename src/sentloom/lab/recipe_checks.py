"""A recipe's plain values become a plan: all are checked, every fault is recorded, every default is filled in."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentloom.data.inputs import BETWEEN_TWINS, twin_files
from sentloom.encoder.locate import HUB_NAME, catalogue_entry, is_model
from sentloom.encoder.tokens import Prompt
from sentloom.engine.artifacts import PREFIX, named_stage
from sentloom.engine.building import Build
from sentloom.engine.plan import Plan
from sentloom.engine.schema import FOR_ALL_STAGES, Keys, Model, Top, missing, one_of, show, validated
from sentloom.engine.stages import STAGES, Stage, Train
from sentloom.lab.baselines.names import parse_baseline
from sentloom.lab.recipe_yaml import Faults, Tree, without

PATH_KEYS = (
    *("base", "data", "on", "sets", "file", "corpus"),
    *("model", "models", "forward", "backward", "source", "sources", "guide", "teacher"),
)
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")  # ${NAME}, or ${NAME:-default}


@dataclass
class Check:
    """Turns one form of a recipe into a plan, and records every fault."""

    tree: Tree
    folder: Path
    faults: Faults
    variables: Mapping[str, str]

    def plan(self, name: str) -> Plan | None:
        """The plan; None if there are faults. `name` is used if the recipe gives none."""
        values = self.tree.value
        for keys, written in _paths(values, (), ""):
            self._variables(keys, written)
        top = self._model(Top, without(values, "stages"), (), ["stages", "variants"])
        common = {key: getattr(top, key) for key in FOR_ALL_STAGES if top and key in values}
        stages = self._stages(common)
        if top is not None and top.base is None and _needs_base(values.get("stages")):
            self._add((), *missing("base"))
        if top is not None and top.base and stages and parse_baseline(top.base):
            self._add(("base",), f"found {show(top.base)}, a baseline, which cannot be trained", "an encoder")
        if top is None or stages is None:
            return None
        return Plan(
            **{key: getattr(top, key) for key in ("title", "pooling", "max_length", "seeds", "trackers")},
            published=top.published,
            published_deviation=top.published_deviation,
            domains={name: self._placed(domain, "data") for name, domain in top.domains.items()},
            name=top.name or name,
            base=top.base and self._located_base(top.base),
            prompt=self._prompt(top, stages),
            stages=tuple(stage.located(self._located) for stage in stages),
            select=top.select and self._placed(top.select, "on", "data"),
            evaluate=top.evaluate and self._placed(top.evaluate, "sets", "data"),
            places={self._located(written): self.tree.spot(keys) for keys, written in _paths(values, (), "")},
            variables=dict(self._variables_of_paths()),
        )

    def _prompt(self, top: Top, stages: Sequence[Stage]) -> Prompt | None:
        """The recipe's; if it states none, that of the first training stage's preset."""
        if "prompt" in self.tree.value:
            return Prompt(**dict(top.prompt)) if top.prompt else None
        own = next((stage.preset_prompt for stage in stages if isinstance(stage, Train)), None)
        return Prompt(**own) if own else None

    def _variables_of_paths(self) -> Iterator[tuple[str, str]]:
        """Every path that is written with a variable, and the variable's name."""
        for _, written in _paths(self.tree.value, (), ""):
            baseline = parse_baseline(written)
            for part in (baseline.source, *baseline.texts) if baseline else (written,):
                if match := VARIABLE.search(part):
                    yield self._located(part), match[1]

    def _stages(self, common: Mapping[str, Any]) -> list[Stage] | None:
        values = self.tree.value.get("stages")
        if not isinstance(values, list):
            problem = f"found {show(values)}" if "stages" in self.tree.value else missing("stages")[0]
            self._add(("stages",), problem, "a list of stages; an empty one leaves the base as it is")
            return None
        self._references(values)
        names = {show(key) for key in (*Top.model_fields, "stages", "variants")}
        built = [self._built(own, ("stages", at), common, names) for at, own in enumerate(values)]
        return None if None in built else [stage for made in built for stage in made or []]

    def _built(self, own: Any, keys: Keys, common: Mapping[str, Any], names: set[str]) -> list[Stage] | None:
        """One stage, with the stages of its short forms before it; `names` are taken."""
        if not isinstance(own, dict):
            self._add(keys, f"found {show(own)}", "a stage: keys and values, method and data among them")
            return None
        build = Build(own, common)
        stages = build.stages()
        for at, problem, expected in build.problems:
            self._add((*keys, *at), problem, expected)
        used = [show(stage.name) for stage in stages] if stages else [show(own.get("name"))]
        for name in used:
            if name in names:
                self._add((*keys, "name"), f"the name {name} is taken", "a name that no key and no other stage has")
        names |= {*used}
        return stages

    def _references(self, values: Sequence[Any]) -> None:
        """Record every `stage:NAME` that is not an earlier stage, or one that produces something else."""
        methods = {stage["name"]: str(stage.get("method")) for stage in values if _is_named(stage)}
        earlier: dict[str, str] = {}
        for at, own in enumerate(values):
            if not _is_named(own):
                continue
            references = {
                "model": (_models_for(own, earlier), "a folder or a hub name"),
                "models": (_models_for(own, earlier), "a folder or a hub name"),
                "data": (_data_of(earlier), "a file"),
            }
            for key, (known, instead) in references.items():
                for place, value in _texts_at(own.get(key)):
                    wrong = _what_is_wrong(value, known, earlier, set(methods), instead)
                    if wrong:
                        self._add(("stages", at, key, *place), *wrong)
            earlier[own["name"]] = methods[own["name"]]

    def _model(
        self, model: type[Model], values: Mapping[str, Any], keys: Keys, more: Sequence[str] = ()
    ) -> Model | None:
        made, wrong = validated(model, values, more)
        for at, problem, expected in wrong:
            self._add((*keys, *at), problem, expected)
        return made

    def _variables(self, keys: Keys, path: str) -> None:
        """Record the environment variables in a path that are not set."""
        for name, default in VARIABLE.findall(path):
            if not self.variables.get(name) and not default:
                self._add(keys, f"the environment variable {name} is not set", "a value for it")

    def _placed(self, part: Model, *names: str) -> Model:
        """A part of the recipe, some of its values located."""
        located = {}
        for name in names:
            value = getattr(part, name)
            located[name] = (
                tuple(map(self._located, value)) if isinstance(value, tuple) else value and self._located(value)
            )
        return part.model_copy(update=located)

    def _located_base(self, name: str) -> str:
        """An encoder or a baseline, with its model and files located."""
        baseline = parse_baseline(name)
        return str(baseline.located(self._located)) if baseline else self._located(name)

    def _located(self, name: str) -> str:
        """A path in the recipe's folder, otherwise in the working folder, if it exists; other names unchanged.

        The folder of a pinned model may have its name without the revision: ./owner/name for owner/name@revision.
        """
        if named_stage(name) is not None:
            return name
        full = VARIABLE.sub(lambda match: self.variables.get(match[1]) or match[2] or "", name)
        if catalogue_entry(full):
            return full
        folders = (self.folder.absolute(), Path().absolute())
        places = (place for folder in folders if (place := _there(folder, full) or _model_there(folder, full)))
        return next(places, full)

    def _add(self, keys: Keys, problem: str, expected: str) -> None:
        self.faults.add(self.tree.spot(keys), problem, expected)


def _paths(value: Any, keys: Keys, named: str) -> Iterator[tuple[Keys, str]]:
    """The texts under every key that may name a path, with their keys."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(part, (*keys, key), key if isinstance(key, str) else named)
    elif isinstance(value, str) and named in PATH_KEYS:
        yield keys, value


def _kind(stage: Any) -> type[Stage] | None:
    method = stage.get("method") if isinstance(stage, dict) else None
    return STAGES.get(method) if isinstance(method, str) else None


def _needs_base(stages: Any) -> bool:
    """Whether there is no stage, or one that takes the encoder before it."""
    if not isinstance(stages, list) or not stages:
        return True
    kinds = [(_kind(stage), stage) for stage in stages]
    return any(kind is None or (kind.MODEL_KIND == "encoder" and not stage.get("model")) for kind, stage in kinds)


def _models_for(stage: Any, earlier: Mapping[str, str]) -> list[str]:
    """What a stage may name as its model; `earlier` stages are names with their methods."""
    kind = _kind(stage)
    known = {name: (STAGES[method], method) for name, method in earlier.items() if method in STAGES}
    return [PREFIX + name for name, made_by in known.items() if kind and kind.takes_model_of(*made_by)]


def _data_of(earlier: Mapping[str, str]) -> list[str]:
    """What a stage may name as its data."""
    made = {name: STAGES[method] for name, method in earlier.items() if method in STAGES}
    return [PREFIX + name + part for name, kind in made.items() if kind.PRODUCES == "dataset" for part in kind.PARTS]


def _what_is_wrong(
    value: str, known: list[str], earlier: Mapping[str, str], all_names: set[str], instead: str
) -> tuple[str, str] | None:
    """Found and expected of a wrong reference; None if it is known. `instead` says what else could be given."""
    name = named_stage(value)
    if name is None or value in known:
        return None
    wrong = "there is no such stage"
    if name in earlier:
        wrong = f"that stage, of the method {earlier[name]}, produces something else"
    elif name in all_names:
        wrong = "that stage does not come before this one"
    problem = f"found {show(value)}, but {wrong}"
    return problem, one_of(value, known) if known else f"{instead}: no earlier stage produces one"


def _is_named(stage: Any) -> bool:
    return isinstance(stage, dict) and isinstance(stage.get("name"), str)


def _texts_at(value: Any) -> Iterator[tuple[Keys, str]]:
    """A text, or those of a list, each with its place below the key."""
    if isinstance(value, str):
        yield (), value
    elif isinstance(value, list):
        yield from (((at,), text) for at, text in enumerate(value) if isinstance(text, str))


def _model_there(folder: Path, name: str) -> str | None:
    """The folder of a model `owner/name@revision`, without the revision."""
    plain, at, _ = name.partition("@")
    try:
        return str(folder / plain) if at and HUB_NAME.fullmatch(plain) and is_model(folder / plain) else None
    except (OSError, ValueError):
        return None


def _there(folder: Path, name: str) -> str | None:
    """A file or folder of that name in a folder, or two files joined by a plus sign."""
    try:
        if (folder / name).exists():
            return str(folder / name)
        twins = twin_files(name, folder)
        return twins and BETWEEN_TWINS.join(map(str, twins))
    except (OSError, ValueError):  # no file can have this name
        return None
