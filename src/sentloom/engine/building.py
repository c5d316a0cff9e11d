"""From plain values to stages: every default filled in, every problem reported, short forms expanded.

`stage` builds one in Python; `lab.recipe_checks` builds those of a recipe.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from sentloom.data.shapes import Shape
from sentloom.engine.artifacts import PREFIX
from sentloom.engine.schema import Keys, missing, one_of, show, validated
from sentloom.engine.stages import STAGES, Stage, Train, Views
from sentloom.engine.stages.stage import DataStage
from sentloom.errors import Problem, RecipeError
from sentloom.methods import METHODS, Options
from sentloom.methods.settings import Settings
from sentloom.writing.views.settings import KINDS, ViewSettings

BESIDE = ("options", "settings")  # fields of a stage whose own keys are written beside the others
VOCABULARY = "vocabulary"  # a stage of the lab
SHORT_FORMS = ("views", VOCABULARY)  # of a training stage: an earlier stage of its own
LISTS = ("data", "corpus")  # one text is a list of one
DATA_KEYS = tuple(name for name in DataStage.model_fields if name not in Stage.model_fields)


def stage(method: str, **values: Any) -> Stage:
    """One stage, as a recipe writes it: `stage("simcse", name="s", data="a.txt", steps=100)`.

    Raises RecipeError with everything that is wrong.
    """
    build = Build({"name": method, **values, "method": method})
    stages = build.stages()
    if stages is None:
        where = f"stage {values.get('name', method)}"
        raise RecipeError([Problem(where, ".".join(map(str, at)), *words) for at, *words in build.problems])
    return stages[-1]


def own_keys(kind: type[BaseModel]) -> list[str]:
    """The keys of a stage class or of another model."""
    return [name for name in kind.model_fields if name not in BESIDE]


@dataclass
class Build:
    """Turns the values of one stage into one stage, or more where it has short forms; notes every problem."""

    values: Mapping[str, Any]
    common: Mapping[str, Any] = field(
        default_factory=dict
    )  # pooling and max_length of the whole recipe; null: the preset's
    problems: list[tuple[Keys, str, str]] = field(default_factory=list)  # place, problem, expected

    def stages(self) -> list[Stage] | None:
        """The stages; None if there are problems."""
        method = self._choice("method", STAGES)
        kind = STAGES[method] if method else Train
        preset = self._choice("preset", kind.presets(method)) if method else None
        chosen: Mapping[str, Any] = kind.presets(method)[preset or "default"] if method else {"epochs": 1}
        common = {key: value for key, value in self.common.items() if key in kind.model_fields and value is not None}
        values = {**chosen, **common, **self.values}
        values |= {key: [values[key]] for key in LISTS if isinstance(values.get(key), str)}
        options_model = self._options_model(kind, method, values)
        if options_model is None:
            return None
        settings_model = Settings if kind.trains() else None
        if method:
            self._known_keys(kind, options_model, *([settings_model] if settings_model else []))
        built = self._model(kind, values)
        options = self._model(options_model, values)
        settings = self._model(settings_model, values) if settings_model else None
        views, vocabulary = (self._views(values), self._vocabulary(values)) if kind is Train else (None, None)
        if not (method and built and options) or (settings_model and settings is None) or self.problems:
            return None
        whole = built.model_copy(update={"options": options, "settings": settings})
        return expanded(whole, views, vocabulary) if isinstance(whole, Train) else [whole]

    def _options_model(
        self, kind: type[Stage], method: str | None, values: Mapping[str, Any]
    ) -> type[BaseModel] | None:
        if method is None:
            return Options
        if kind is Views and self._choice("kind", KINDS) is None:
            if not isinstance(values.get("kind"), str):
                self.problems.append(((), missing("kind")[0], f"one of {', '.join(KINDS)}"))
            return None
        return kind.options_model(values)

    def _views(self, values: Mapping[str, Any]) -> ViewSettings | None:
        """The short form `views`: checked as the options of a stage of its own."""
        own = values.get("views")
        if own is None:
            return None
        if not isinstance(own, dict) or not isinstance(own.get("kind"), str):
            expected = f"keys and values, with a kind: {', '.join(KINDS)}"
            self.problems.append((("views",), f"found {show(own)}", expected))
            return None
        if own["kind"] not in KINDS:
            self.problems.append((("views", "kind"), f"found {show(own['kind'])}", one_of(own["kind"], KINDS)))
            return None
        method = str(values.get("method"))
        if method in METHODS and Shape.PAIRS not in METHODS[method].SHAPES:
            self.problems.append((("views",), f"{method} takes no views: it learns from single sentences", ""))
        settings, wrong = validated(KINDS[own["kind"]], own)
        self.problems += [(("views", *at), problem, expected) for at, problem, expected in wrong]
        return settings

    def _vocabulary(self, values: Mapping[str, Any]) -> BaseModel | None:
        """The short form `vocabulary`: a number of tokens."""
        if values.get(VOCABULARY) is None:
            return None
        options, wrong = validated(STAGES[VOCABULARY].OPTIONS, {"size": values[VOCABULARY]})
        self.problems += [((VOCABULARY,), problem, expected) for _, problem, expected in wrong]
        return options

    def _model(self, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
        checked, wrong = validated(model, {key: values[key] for key in own_keys(model) if key in values})
        self.problems += wrong
        return checked

    def _known_keys(self, kind: type[Stage], *others: type[BaseModel]) -> None:
        known = [name for model in (kind, *others) for name in own_keys(model)]
        known += SHORT_FORMS if kind is Train else ()
        for key in self.values:
            if key not in known:
                self.problems.append(((key,), f"unknown key {show(key)}", one_of(key, known)))

    def _choice(self, key: str, known: Mapping[str, Any]) -> str | None:
        """A text that must be a known name; None if it is missing or wrong (other types are reported elsewhere)."""
        value = self.values.get(key)
        if not isinstance(value, str):
            return None
        if value in known:
            return value
        self.problems.append(((key,), f"found {show(value)}", one_of(value, known)))
        return None


def expanded(train: Train, views: ViewSettings | None, vocabulary: BaseModel | None) -> list[Stage]:
    """A training stage with its short forms as stages before it."""
    before: list[Stage] = []
    if views is not None:
        rewriting = Views(name=f"{train.name}-views", method="views", options=views, **_data(train))
        before.append(rewriting)
        files = {"data": (f"{PREFIX}{rewriting.name}",), "columns": None, "shape": None}
        train = train.model_copy(update={**files, "data_share": 1.0, "drop_leaks": False})
    if vocabulary is not None:
        pooling = {"pooling": train.pooling, "default_pooling": train.preset_pooling}
        own = {"name": f"{train.name}-{VOCABULARY}", "method": VOCABULARY, "options": vocabulary}
        before.append(STAGES[VOCABULARY].model_validate({**own, **_data(train), **pooling}))
    return [*before, train]


def _data(stage: DataStage) -> dict[str, Any]:
    return {name: getattr(stage, name) for name in DATA_KEYS}
