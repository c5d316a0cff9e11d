"""The keys of a recipe, and the message for a value that is not allowed."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from sentloom.encoder.pooling import Pooling
from sentloom.errors import InputError, plain_words

SHOWN_CHARACTERS = 80
SHOWN_NAMES = 8

Keys = tuple[str | int, ...]  # where a value is: the keys on the way to it
Model = TypeVar("Model", bound=BaseModel)


def show(value: object) -> str:
    """A value as YAML writes it, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def one_of(name: str, known: Iterable[str], before: str = "") -> str:
    """The name nearest to what was written; with the known names, if they are few or if none is near."""
    names = {re.sub(r"[\W_]+", "", full).casefold(): full for full in known}
    near = difflib.get_close_matches(re.sub(r"[\W_]+", "", name).casefold(), names, n=1, cutoff=0.6)
    hint = f'did you mean "{names[near[0]]}"?' if near else ""
    if near and len(names) > SHOWN_NAMES:
        return hint
    return f"{before}one of {', '.join(names.values())}" + (f": {hint}" if hint else "")


class Strict(BaseModel):
    """Frozen, and no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _canonical_pooling(text: str) -> str:
    try:
        return str(Pooling.parse(text))
    except (InputError, ValueError) as error:
        raise ValueError(error.expected if isinstance(error, InputError) else "layers of a model") from None


def at_least_one(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse an empty list."""
    if not values:
        raise ValueError("at least one value")
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("each value once")
    return values


Text = Annotated[str, Field(min_length=1)]
PoolingName = Annotated[str, AfterValidator(_canonical_pooling)]  # `cls` becomes `first`
Length = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]


class Select(Strict):
    """Which weights are used: the best on a set, which is scored every `every` steps, or the last.

    `patience` stops a run after that many scores in a row without a new best, `endurance` after that many drops.
    """

    on: Text
    data: Text | None = None
    every: int = Field(ge=1)
    patience: int | None = Field(None, ge=1)
    endurance: int | None = Field(None, ge=1)
    keep: Literal["best", "last"] = "best"


class Evaluate(Strict):
    """What the result is scored on: names of sets, or files; `mean` adds their unweighted mean, `means` named ones.

    `STS-B@pearson` is another score of a set than its main one.
    """

    sets: Annotated[tuple[Text, ...], AfterValidator(at_least_one)]
    data: Text | None = None
    mean: bool = False
    means: dict[str, Annotated[tuple[Text, ...], AfterValidator(at_least_one)]] = Field(default_factory=dict)
    hidden: int = Field(0, ge=0)  # hidden units of the classifiers of transfer sets; 0: logistic regression
    fast: bool = False  # fewer folds and training rows for classifiers, as `evaluate --fast`

    @model_validator(mode="after")
    def _means_of_sets(self) -> "Evaluate":
        unknown = [name for sets in self.means.values() for name in sets if name not in self.sets]
        if unknown:
            raise ValueError(f"a mean over {unknown[0]}, which is not among the sets")
        return self


class Around(Strict):
    """Text before and after every sentence, joined to it exactly as given; it becomes part of the encoder."""

    prefix: str = ""
    suffix: str = ""

    @model_validator(mode="after")
    def _some_words(self) -> "Around":
        if not (self.prefix or self.suffix):
            raise ValueError("the prompt has neither a prefix nor a suffix")
        return self


class Quoted(Strict):
    """A row of a paper's table that cannot be run: its published scores, and why."""

    published: dict[str, float]
    why: Text


class Domain(Strict):
    """Sentences of a domain, and the sets of it: a row that adapts is trained for each domain."""

    data: Text
    sets: Annotated[tuple[Text, ...], AfterValidator(at_least_one)]


class Top(Strict):
    """The keys of a recipe, except stages and variants."""

    title: str | None = None
    name: Text | None = None
    base: Text | None = None  # None if no stage takes an encoder
    prompt: Around | None = None
    pooling: PoolingName | None = None
    max_length: Length | None = None
    select: Select | None = None
    evaluate: Evaluate | None = None
    seeds: Annotated[tuple[Seed, ...], AfterValidator(at_least_one), AfterValidator(_distinct)] = (1,)
    trackers: Annotated[tuple[Literal["tensorboard", "wandb"], ...], AfterValidator(_distinct)] = ()
    published: dict[str, float] = Field(default_factory=dict)
    published_deviation: dict[str, float] = Field(default_factory=dict)  # over seeds, of those scores
    quoted: dict[Text, Quoted] = Field(default_factory=dict)  # rows of the table that cannot be run, by name
    domains: dict[Text, Domain] = Field(default_factory=dict)
    needs: dict[Text, Text] = Field(default_factory=dict)  # where the value of an environment variable comes from


FOR_ALL_STAGES = ("pooling", "max_length")
# The first part of an override, unless it is a stage.
TOP = tuple(key for key in (*Top.model_fields, "stages") if key != "name")


def validated(
    model: type[Model], values: Mapping[str, Any], more: Sequence[str] = ()
) -> tuple[Model | None, list[tuple[Keys, str, str]]]:
    """Values as a model, or what is wrong: place, problem, expected. `more` are keys that other models check.

    Validation goes through JSON: there pydantic is strict about types and still accepts a list for a tuple.
    """
    try:
        return model.model_validate_json(json.dumps(values), strict=True), []
    except ValidationError as error:
        expected: dict[tuple[Keys, str], list[str]] = {}  # a union reports what each of its members expected
        for detail in error.errors():
            at, problem, said = _explained(detail, model, values, more)
            expected.setdefault((at, problem), []).append(said)
        return None, [(at, problem, " or ".join(said)) for (at, problem), said in expected.items()]


def missing(key: str) -> tuple[str, str]:
    """Problem and expected where a key must be given."""
    return f"the key {show(key)} is missing", ""


def _explained(
    error: ErrorDetails, model: type[BaseModel], values: Mapping[str, Any], more: Sequence[str]
) -> tuple[Keys, str, str]:
    """Place, problem and expected of one of pydantic's errors."""
    *around, last = error["loc"] or ("",)
    if error["type"] == "missing":
        short = isinstance(last, int)  # a list
        return tuple(around), *((f"the list has {last} values", "more") if short else missing(str(last)))
    at = _real(error["loc"], values)
    if error["type"] == "extra_forbidden":
        known = [*_fields(model, around), *([] if around else more)]
        return at, f"unknown key {show(last)}", one_of(str(last), known)
    said = plain_words(error["msg"])
    if not error["loc"]:  # about the model as a whole
        return at, said, ""
    if error["type"] in ("literal_error", "enum") and isinstance(error["input"], str):
        said = one_of(error["input"], re.findall(r"'([^']*)'", error["ctx"]["expected"]))
    return at, f"found {show(error['input'])}", said


def _real(loc: Sequence[str | int], values: Any) -> Keys:
    """The part of pydantic's place that exists in the values: after it come the names of a union's members."""
    at: list[str | int] = []
    for key in loc:
        inside = key in values if isinstance(values, dict) else isinstance(values, list) and isinstance(key, int)
        if not inside:
            break
        at.append(key)
        values = values[key]
    return tuple(at)


def _fields(model: type[BaseModel], around: Sequence[str | int]) -> list[str]:
    """The keys of a model, or of the model inside it at this place."""
    keys = (key for key in around if isinstance(key, str))
    for key in keys:
        annotation = model.model_fields[key].annotation
        model = next(_models(annotation))
        if _is_mapping(annotation):
            next(keys, None)  # a key that the user chose
    return list(model.model_fields)


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) is dict or any(map(_is_mapping, get_args(annotation)))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
