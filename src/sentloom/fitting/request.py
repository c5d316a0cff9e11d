"""What a fit is asked for, and where it puts what it makes."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentloom.data.shapes import Shape
from sentloom.encoder.locate import READ_ONLY, locate, refuse_no_model
from sentloom.errors import InputError, option
from sentloom.files import at_its_name
from sentloom.fitting.inputs import RECIPES, refuse_missing
from sentloom.writing.endpoint import EndpointOptions, find_endpoint

DEFAULTS: dict[str, Any] = {"bases": ("embedded",), "budget": "10m", "seed": 1}
UNITS = {"s": 1, "m": 60, "h": 3600}
BUDGET_FORM = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>s|m|h|steps?)", re.IGNORECASE)
SET_BY_RECIPES = (
    *("bases", "budget", "seed", "dimensions", "writer", "writer_model", "max_tokens", "guide", "teacher"),
    *("shape", "columns"),
)
DEVICES = (
    "cpu",
    "cuda",
    "mps",
    "xpu",
    "hpu",
    "npu",
    "mlu",
    "mtia",
    "xla",
    "maia",
    "ipu",
    "privateuseone",
)  # of PyTorch

DIMENSIONS_FIX = "write them as in 384,256,128,64"

Log = Callable[[str], None]


@dataclass(frozen=True)
class Budget:
    """Seconds in total, or optimizer steps over all runs: one of the two is given."""

    seconds: float | None
    steps: int | None

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """From "10m", "90s", "1.5h" or "400steps"."""
        match = BUDGET_FORM.fullmatch(str(text).strip())
        unit = match["unit"].lower() if match else ""
        number = float(match["number"]) if match else 0.0
        if number == 0 or (unit not in UNITS and not number.is_integer()):
            raise InputError(
                option("budget"),
                f"{text!r} is not a budget",
                "a time or a number of steps",
                "for example 10m, 90s, 1.5h or 400steps",
            )
        return cls(number * UNITS[unit], None) if unit in UNITS else cls(None, int(number))


@dataclass(frozen=True)
class Request:
    """The arguments of `sentloom fit`."""

    data: tuple[str, ...]
    output: Path  # the model
    bases: tuple[str, ...]  # every route starts from each of them
    budget: str  # "" for a recipe, which says itself how long its stages are
    against: tuple[str, ...]  # evaluation sets that decide instead of held-out rows
    general: Path | None  # a data folder with a labelled general set
    force: bool
    writer: str | None  # None: the embedded one, if there is time for it; "none": none
    seed: int
    guide: str | None = None  # an encoder that filters false negatives; None: there is none
    writer_model: str | None = None  # of an endpoint
    max_tokens: int | None = None  # read and written by an endpoint, at most, over all runs of the fit
    teacher: str | None = None  # a cross-encoder to learn from, if it ranks better than the base
    shape: Shape | None = None  # of every input, if its columns do not say it
    columns: Mapping[str, str | int] | None = None
    group: tuple[str, ...] = ()  # columns whose values connect rows: a customer, a thread, a document
    ticks: tuple[str, ...] = ()  # files of answers that people gave about this fit (`--labels`)
    corpus: tuple[str, ...] = ()  # more texts to search among
    dimensions: tuple[int, ...] = ()  # that vectors can be truncated to
    strict: bool = False  # refuse data with a single unusable row
    examples: bool = True  # whether the report may show texts of the rows
    device: str | None = None
    precision: str | None = None
    label_columns: Mapping[str, str] = field(default_factory=dict)  # which of several, for files of rows in memory
    labels: Mapping[str, str] = field(default_factory=dict)  # what files of rows in memory are called: "the list"
    lost: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # rows in memory that such a file is without

    @property
    def folder(self) -> Path:
        """Where everything but the model goes: beside it."""
        return self.folder_of(self.output)

    @staticmethod
    def folder_of(output: Path) -> Path:
        """The folder beside a model."""
        named = output if output.name else output.resolve()
        return named.with_name(f"{named.name}.fit")

    def label(self, name: str) -> str:
        """What an input is called in messages and reports."""
        return self.labels.get(name, name)

    @property
    def recipe(self) -> Path | None:
        """The recipe, if one is given instead of data."""
        (first, *_) = self.data
        return Path(first) if _is_recipe(first) else None

    @property
    def base_paths(self) -> tuple[str, ...]:
        """The bases as a recipe in another folder can name them."""
        return tuple(map(_absolute, self.bases))

    @property
    def writer_path(self) -> str | None:
        """The writer as a recipe in another folder can name it."""
        return self.writer and _absolute(self.writer)

    @property
    def endpoint(self) -> EndpointOptions | None:
        """The endpoint that writes; None if a model on this machine does, or nothing is written."""
        return find_endpoint(self.writer, self.writer_model, self.max_tokens)

    @property
    def guide_path(self) -> str | None:
        """The guide as a recipe in another folder can name it."""
        return self.guide and _absolute(self.guide)

    @property
    def teacher_path(self) -> str | None:
        """The teacher as a recipe in another folder can name it."""
        return self.teacher and _absolute(self.teacher)

    @property
    def parsed_budget(self) -> Budget:
        """The budget as a number of seconds or steps."""
        return Budget.parse(self.budget)

    @property
    def command(self) -> str:
        """The command that does the same."""
        parts = ["sentloom", "fit", *self.data, "-o", str(self.output)]
        if not self.recipe:
            parts += [part for base in self.bases for part in ("--base", base)]
            parts += ["--budget", self.budget, "--seed", str(self.seed)]
        parts += [part for name in self.against for part in ("--against", name)]
        parts += [part for file in self.ticks for part in ("--labels", file)]
        parts += [part for column in self.group for part in ("--group", column)]
        parts += [part for file in self.corpus for part in ("--corpus", file)]
        parts += ["--dimensions", ",".join(map(str, self.dimensions))] if self.dimensions else []
        parts += ["--general", str(self.general)] if self.general else []
        parts += ["--writer", self.writer] if self.writer else []
        parts += ["--writer-model", self.writer_model] if self.writer_model else []
        parts += ["--max-tokens", str(self.max_tokens)] if self.max_tokens else []
        parts += ["--guide", self.guide] if self.guide else []
        parts += ["--teacher", self.teacher] if self.teacher else []
        parts += ["--shape", str(self.shape)] if self.shape else []
        columns = ",".join(f"{role}={name}" for role, name in (self.columns or {}).items())
        parts += ["--columns", columns] if columns else []
        parts += ["--force"] if self.force else []
        parts += ["--strict"] if self.strict else []
        parts += [] if self.examples else ["--no-examples"]
        parts += ["--device", self.device] if self.device else []
        parts += ["--precision", self.precision] if self.precision else []
        return shlex.join(parts)


def strings(names: str | Path | Sequence[str | Path]) -> list[str]:
    """One name or several, as a list."""
    return [str(names)] if isinstance(names, str | Path) else [str(name) for name in names]


def make_request(
    data: Sequence[str],
    output: str | Path,
    *,
    base: str | Path | Sequence[str | Path] | None,
    against: str | Path | Sequence[str | Path],
    labels: str | Path | Sequence[str | Path],
    general: str | Path | None,
    group: str | Sequence[str],
    corpus: str | Path | Sequence[str | Path],
    names: Mapping[str, str] | None = None,
    **others: Any,
) -> Request:
    """A request from what `fit` was given, in Python or as a command; None: an option was not given.

    `names` are what files of rows in memory are called.
    """
    others = {**others, "bases": _model_names(base)}
    for role in ("writer", "guide", "teacher", "device"):
        others[role] = str(others[role]) if others[role] else None
    chosen = with_defaults(data, {name: others[name] for name in SET_BY_RECIPES})
    return Request(
        data=tuple(data),
        output=Path(output),
        labels=names or {},
        against=tuple(strings(against)),
        ticks=tuple(strings(labels)),
        general=Path(general) if general else None,
        group=tuple(strings(group)),
        corpus=tuple(strings(corpus)),
        **{**others, **chosen, "dimensions": tuple(map(int, others["dimensions"] or ()))},
    )


def _model_names(base: str | Path | Sequence[str | Path] | None) -> tuple[str, ...] | None:
    if base is None:
        return None
    if not (names := strings(base)):
        raise InputError("base", "the list is empty", "one model or more", "name one, or leave the option out")
    return tuple(names)


def _absolute(name: str) -> str:
    """The absolute path of a folder; a name that is not a folder stays as it is."""
    return str(Path(name).resolve()) if at_its_name(Path(name)).is_dir() else name


def with_defaults(data: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Base, budget and seed, as given (None: not given) or by default. A recipe says itself what they are."""
    recipes = [name for name in data if _is_recipe(name)]
    if recipes and len(data) > 1:
        fix = "name the data in the recipe, or leave the recipe out"
        raise InputError(recipes[0], "a recipe is given together with other data", "the recipe alone", fix)
    if recipes and (options_given := [_option(name) for name, value in options.items() if value is not None]):
        names, pronoun = " and ".join(options_given), "it" if len(options_given) == 1 else "them"
        problem = f"{names} cannot be given with a recipe, which sets {pronoun}"
        raise InputError(recipes[0], problem, "", f"leave out {names}, or change the recipe")
    defaults = {**DEFAULTS, "budget": ""} if recipes else DEFAULTS
    return {name: value if options[name] is None else options[name] for name, value in defaults.items()}


def _option(name: str) -> str:
    return option("base" if name == "bases" else name)


def _is_recipe(name: str) -> bool:
    return Path(name).suffix in RECIPES


def refuse_bad_request(request: Request) -> None:
    """Report at once, and without PyTorch, what would otherwise fail later."""
    if not request.data or not all(request.data):
        raise InputError("data", "nothing is given", "one file or more", "name the files to learn from")
    if not all(request.against):
        raise InputError(option("against"), "the name is empty", "a set or a file", "name one, or leave the option out")
    assert request.recipe or request.parsed_budget, "a budget that can be parsed"
    if not isinstance(request.seed, int) or request.seed < 0:
        raise InputError("seed", f"{request.seed!r} is not a seed", "an integer of 0 or more", "choose another seed")
    _refuse_repeated_base(request)
    _refuse_unknown_models(request)
    _refuse_bad_dimensions(request.dimensions)
    _refuse_unknown_device(request.device)
    _refuse_missing_files(request)
    refuse_no_model(request.output)
    _refuse_foreign_model(request)


def _refuse_repeated_base(request: Request) -> None:
    known = request.base_paths
    if twice := [name for name, path in zip(request.bases, known, strict=True) if known.count(path) > 1]:
        raise InputError(option("base"), f"{twice[0]} is named twice", "different models", "name each of them once")


def _refuse_unknown_models(request: Request) -> None:
    """Models are loaded late: a name that cannot be found is reported at once."""
    for name in request.bases:
        if name != "embedded":
            locate(name)
    at_endpoint = request.endpoint is not None
    own_names = {"writer": ("embedded", "none"), "guide": ("embedded", *READ_ONLY), "teacher": ("embedded",)}
    for role, known in own_names.items():
        name = getattr(request, role)
        if name and name not in known and not (role == "writer" and at_endpoint):
            locate(name)


def _refuse_unknown_device(device: str | None) -> None:
    """A word that is no device anywhere; which devices this machine has, PyTorch knows once it is loaded."""
    if device is None or re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", device):
        return
    fix = "for a GPU, use cuda" if device.casefold() == "gpu" else "choose another device, or leave it out"
    expected = "a name such as cpu, cuda, cuda:1 or mps"
    raise InputError(option("device"), f"{device!r} is not a device", expected, fix)


def _refuse_missing_files(request: Request) -> None:
    for name in (*request.against, *request.corpus):
        refuse_missing(name)
    for name in request.ticks:
        if not Path(name).is_file():
            fix = "`sentloom tick MODEL.fit` writes such a file"
            raise InputError(name, "it cannot be read: No such file or directory", "a file of ticks", fix)
    if request.general and not request.general.is_dir():
        expected = "a data folder with sts/STSB.test.tsv"
        raise InputError(option("general"), f"there is no folder {request.general}", expected, "check the path")


def _refuse_bad_dimensions(dimensions: Sequence[int]) -> None:
    """Different numbers of dimensions; whether vectors have as many is known once the base is loaded."""
    wrong = [number for number in dimensions if type(number) is not int or number < 1]
    if wrong or len(set(dimensions)) < len(dimensions):
        problem = f"{wrong[0]!r} is not a number of dimensions" if wrong else "a number of dimensions is given twice"
        raise InputError(option("dimensions"), problem, "different whole numbers of 1 or more", DIMENSIONS_FIX)


def parse_dimensions(text: str) -> tuple[int, ...]:
    """From "384,256,128,64"."""
    parts = [part.strip() for part in text.split(",")]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        problem = f"cannot parse {wrong[0]!r} in {text!r}"
        raise InputError(option("dimensions"), problem, "whole numbers with commas between them", DIMENSIONS_FIX)
    return tuple(map(int, parts))


def _refuse_foreign_model(request: Request) -> None:
    """A model is replaced only if a fit wrote it, and never by one that starts from it."""
    output = request.output.resolve()
    if output.exists() and output in [Path(base).resolve() for base in request.bases]:
        problem = "this is the base itself"
    elif output.exists() and not output.with_name(f"{output.name}.fit").is_dir():
        problem = "this model was not written by fit"
    else:
        return
    raise InputError(str(request.output), problem, "a folder that does not exist yet", "choose another folder")
