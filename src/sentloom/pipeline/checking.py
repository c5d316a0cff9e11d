"""From plain values to a plan: everything is checked, every fault is noted, every default filled in."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sentloom.data.inputs import BETWEEN_TWINS, twin_files
from sentloom.encoder.prompts import Prompt
from sentloom.methods import METHODS, Options
from sentloom.pipeline.makers import MAKERS, MODEL_MAKERS
from sentloom.pipeline.overrides import without
from sentloom.pipeline.plan import Making, Plan, Stage
from sentloom.pipeline.references import data_of, models_for, named_stage, what_is_wrong
from sentloom.pipeline.schema import FOR_ALL_STAGES, MakingKeys, Model, StageKeys, Top, validated
from sentloom.pipeline.yaml_source import Faults, Keys, Tree, one_of, show
from sentloom.training.settings import Settings
from sentloom.views.settings import KINDS, BackTranslation, MaskFill, ReadyPairs, ViewSettings

PATH_KEYS = ("base", "data", "on", "sets", "file", "model", "forward", "backward", "source")
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")  # ${NAME}, or ${NAME:-what stands for it when it is not set}


@dataclass
class Check:
    """Turns one form of a recipe into a plan, and notes every fault on the way."""

    tree: Tree
    folder: Path
    faults: Faults

    def plan(self, name: str) -> Plan | None:
        """The plan; None if there are faults. `name` serves where the recipe gives none."""
        values = self.tree.value
        self._variables(values, (), "")
        top = self._model(Top, without(values, "stages"), (), ["stages", "variants"])
        common = {key: getattr(top, key) for key in FOR_ALL_STAGES if top and key in values}
        stages = self._stages(common)
        if top is not None and top.base is None and not _only_makes(values.get("stages")):
            self._add((), 'no "base"', "that key")
        if top is None or None in stages:
            return None
        return Plan(
            **{key: getattr(top, key) for key in ("title", "pooling", "max_length", "seeds", "trackers", "published")},
            name=top.name or name,
            base=top.base and self._located(top.base),
            prompt=Prompt(**dict(top.prompt)) if top.prompt else None,
            making=tuple(stage for stage in stages if isinstance(stage, Making)),
            stages=tuple(stage for stage in stages if isinstance(stage, Stage)),
            select=top.select and self._placed(top.select, "on", "data"),
            evaluate=top.evaluate and self._placed(top.evaluate, "sets", "data"),
        )

    def _stages(self, common: Mapping[str, Any]) -> list[Stage | Making | None]:
        values = self.tree.value.get("stages")
        if not isinstance(values, list):
            found = show(values) if "stages" in self.tree.value else 'no "stages"'
            self._add(("stages",), found, "a list of stages; an empty one leaves the base as it is")
            return [None]
        stages: list[Stage | Making | None] = []
        self._references(values)
        names = {show(key) for key in (*Top.model_fields, "stages", "variants")}
        for at, own in enumerate(values):
            keys: Keys = ("stages", at)
            if not isinstance(own, dict):
                self._add(keys, show(own), "a stage: keys and values, method and data among them")
                continue
            name = show(own.get("name"))
            if name in names:
                self._add((*keys, "name"), f"the name {name}", "one that no key and no other stage has")
            names.add(name)
            stages.append(self._making(own, keys) if _makes(own) else self._stage(own, keys, common))
        return stages

    def _references(self, values: Sequence[Any]) -> None:
        """Note every `stage:NAME` that is not an earlier stage, or one that makes something else."""
        methods = {one["name"]: str(one.get("method")) for one in values if _is_named(one)}
        earlier: dict[str, str] = {}
        for at, own in enumerate(values):
            if not _is_named(own):
                continue
            models = models_for(str(own.get("method")), earlier)
            wanted = {"model": (models, "a folder or a hub name"), "data": (data_of(earlier), "a file")}
            for key, (known, instead) in wanted.items():
                for place, value in _texts_at(own.get(key)):
                    wrong = what_is_wrong(value, known, earlier, set(methods), instead)
                    if wrong:
                        self._add(("stages", at, key, *place), *wrong)
            earlier[own["name"]] = methods[own["name"]]

    def _making(self, own: dict[str, Any], keys: Keys) -> Making | None:
        maker = MAKERS[own["method"]]
        trains = own["method"] in MODEL_MAKERS
        models: list[type[BaseModel]] = [MakingKeys, maker.Options, *([Settings] if trains else [])]
        self._known_keys(own, keys, *models)
        values = {**maker.PRESETS[self._choice(own, "preset", keys, maker.PRESETS) or "default"], **own}
        if isinstance(values.get("data"), str):
            values["data"] = [values["data"]]
        named = self._model(MakingKeys, _among(values, MakingKeys), keys)
        options = self._model(maker.Options, _among(values, maker.Options), keys)
        settings = self._model(Settings, _among(values, Settings), keys) if trains else None
        if not (named and options) or (trains and settings is None):
            return None
        return Making(**dict(self._placed(named, "data", "model")), options=options, settings=settings)

    def _stage(self, own: dict[str, Any], keys: Keys, common: Mapping[str, Any]) -> Stage | None:
        method = METHODS.get(self._choice(own, "method", keys, [*METHODS, *MAKERS]) or "")
        presets = method.PRESETS if method else {"default": {"epochs": 1}}  # whatever ends: other faults are looked for
        options_class: type[Options] = method.Options if method else Options
        if method:
            self._known_keys(own, keys, StageKeys, options_class, Settings, more=["views"])
        preset = self._choice(own, "preset", keys, presets) if method else None
        values = {**without(presets[preset or "default"], "pooling"), **common, **own}
        if isinstance(values.get("data"), str):
            values["data"] = [values["data"]]
        named = self._model(StageKeys, _among(values, StageKeys), keys)
        options = self._model(options_class, _among(values, options_class), keys)
        settings = self._model(Settings, _among(values, Settings), keys)
        views = self._views(own.get("views"), (*keys, "views"))
        if not (method and named and options and settings):
            return None
        placed = self._placed(options, *options.MODELS)
        return Stage(**dict(self._placed(named, "data")), views=views, options=placed, settings=settings)

    def _known_keys(
        self, own: Mapping[str, Any], keys: Keys, *models: type[BaseModel], more: Sequence[str] = ()
    ) -> None:
        known = [*(name for model in models for name in model.model_fields), *more]
        for key in own:
            if key not in known:
                self._add((*keys, key), f"the key {show(key)}", one_of(key, known))

    def _choice(self, own: Mapping[str, Any], key: str, keys: Keys, known: Iterable[str]) -> str | None:
        """A text that must be one of the known; None if it is not given or wrong (other types are found elsewhere)."""
        value = own.get(key)
        if not isinstance(value, str):
            return None
        if value in known:
            return value
        self._add((*keys, key), show(value), one_of(value, known))
        return None

    def _views(self, values: Any, keys: Keys) -> ViewSettings | None:
        if values is None:
            return None
        if not isinstance(values, dict) or not isinstance(values.get("kind"), str):
            self._add(keys, show(values), f"keys and values, with a kind: {', '.join(KINDS)}")
            return None
        kind = self._choice(values, "kind", keys, KINDS)
        views = self._model(KINDS[kind], values, keys) if kind else None
        match views:
            case ReadyPairs():
                return self._placed(views, "file")
            case MaskFill():
                return self._placed(views, "model")
            case BackTranslation():
                pivots = tuple(self._placed(pivot, "forward", "backward") for pivot in views.pivots)
                return views.model_copy(update={"pivots": pivots})
        return views

    def _model(
        self, model: type[Model], values: Mapping[str, Any], keys: Keys, more: Sequence[str] = ()
    ) -> Model | None:
        made, wrong = validated(model, values, more)
        for at, found, wanted in wrong:
            self._add((*keys, *at), found, wanted)
        return made

    def _variables(self, value: Any, keys: Keys, named: str) -> None:
        """Note the environment variables that are not set, in whatever stands under a key that may name a path."""
        if isinstance(value, dict | list):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                self._variables(part, (*keys, key), key if isinstance(key, str) else named)
        elif isinstance(value, str) and named in PATH_KEYS:
            for name, default in VARIABLE.findall(value):
                if not os.environ.get(name) and not default:
                    self._add(keys, f"${{{name}}}, which is not set", f"a value in the environment variable {name}")

    def _placed(self, part: Model, *names: str) -> Model:
        """A part of the recipe, some of its values located."""
        found = {}
        for name in names:
            value = getattr(part, name)
            found[name] = (
                tuple(map(self._located, value)) if isinstance(value, tuple) else value and self._located(value)
            )
        return part.model_copy(update=found)

    def _located(self, name: str) -> str:
        """A path in the recipe's folder, else in the working folder, if it is there; other names as they are."""
        if named_stage(name) is not None:
            return name
        full = VARIABLE.sub(lambda match: os.environ.get(match[1]) or match[2] or "", name)
        if full == "embedded":
            return full
        places = (_there(folder.absolute(), full) for folder in (self.folder, Path()))
        return next((place for place in places if place), full)

    def _add(self, keys: Keys, found: str, wanted: str) -> None:
        self.faults.add(self.tree.spot(keys), found, wanted)


def _among(values: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    return {key: values[key] for key in model.model_fields if key in values}


def _makes(stage: Any) -> bool:
    """Whether a stage makes something other than an encoder."""
    return isinstance(stage, dict) and isinstance(stage.get("method"), str) and stage["method"] in MAKERS


def _only_makes(stages: Any) -> bool:
    return isinstance(stages, list) and bool(stages) and all(map(_makes, stages))


def _is_named(stage: Any) -> bool:
    return isinstance(stage, dict) and isinstance(stage.get("name"), str)


def _texts_at(value: Any) -> Iterator[tuple[Keys, str]]:
    """A text, or those of a list, each with its place below the key."""
    if isinstance(value, str):
        yield (), value
    elif isinstance(value, list):
        yield from (((at,), one) for at, one in enumerate(value) if isinstance(one, str))


def _there(folder: Path, name: str) -> str | None:
    """A file or folder of that name in a folder, or two files with a plus between their names."""
    try:
        if (folder / name).exists():
            return str(folder / name)
        twins = twin_files(name, folder)
        return twins and BETWEEN_TWINS.join(map(str, twins))
    except (OSError, ValueError):  # a name that no file can have
        return None
