"""What a fit is asked for, and where it puts what it makes."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from sentloom.data.beir import CORPUS, TEST, TRAIN, splits_of
from sentloom.data.inputs import How, named, split_name
from sentloom.encoder.locate import refuse_absent, refuse_no_model
from sentloom.engine.rows import InputFile
from sentloom.errors import InputError, option
from sentloom.files import at_its_name
from sentloom.fitting.inputs import RECIPES, refuse_missing
from sentloom.fitting.options import DIMENSIONS_FIX, OPTIONS, Option, Options, read_options
from sentloom.writing.endpoint import EndpointOptions, find_endpoint

UNITS = {"s": 1, "m": 60, "h": 3600}
AUTO = "auto"  # as a base: the best that is on this machine (`base_choice`)
BUDGET_FORM = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>s|m|h|steps?)", re.IGNORECASE)
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


@dataclass(frozen=True, kw_only=True)
class Request(Options):
    """The arguments of `sentloom fit`. A recipe sets base, seed and lengths itself: the budget beside one is empty."""

    data: tuple[str, ...]
    output: Path  # the model
    in_memory: Mapping[str, InputFile] = field(default_factory=dict)  # by name: files of rows that were in memory

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
        return (name in self.in_memory and self.in_memory[name].label) or name

    @property
    def recipe(self) -> Path | None:
        """The recipe, if one is given instead of data."""
        (first, *_) = self.data
        return Path(first) if _is_recipe(first) else None

    @property
    def picks_base(self) -> bool:
        """Whether the base is the best that is on this machine."""
        return self.base == (AUTO,)

    @property
    def base_paths(self) -> tuple[str, ...]:
        """The bases as a recipe in another folder can name them."""
        return tuple(map(absolute, self.base))

    @property
    def writer_path(self) -> str | None:
        """The writer as a recipe in another folder can name it."""
        return self.writer and absolute(self.writer)

    @property
    def endpoint(self) -> EndpointOptions | None:
        """The endpoint that writes; None if a model on this machine does, or nothing is written."""
        return find_endpoint(self.writer, self.writer_model, self.max_tokens)

    @property
    def guide_path(self) -> str | None:
        """The guide as a recipe in another folder can name it."""
        return self.guide and absolute(self.guide)

    @property
    def teacher_paths(self) -> tuple[str, ...]:
        """The teachers as a recipe in another folder can name them."""
        return tuple(map(absolute, self.teacher))

    @property
    def parsed_budget(self) -> Budget:
        """The budget as a number of seconds or steps."""
        return Budget.parse(self.budget)

    @property
    def command(self) -> str:
        """The command that does the same."""
        said = [
            part
            for option in OPTIONS.values()
            if not (option.by_recipe and self.recipe)
            for part in _said(option, getattr(self, option.name))
        ]
        return shlex.join(["sentloom", "fit", *self.data, "-o", str(self.output), *said])


def _said(option: Option, value: Any) -> list[str]:
    """An option as the command takes it; nothing if it does nothing."""
    flag = option.flag
    if option.is_flag:
        return [] if value == option.default else [f"--{flag}" if value else f"--no-{flag}"]
    if value is None or value in ((), {}):
        return []
    if option.is_list:
        return [part for item in value for part in (f"--{flag}", item)]
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    if isinstance(value, Mapping):
        value = ",".join(f"{role}={name}" for role, name in value.items())
    return [f"--{flag}", str(value)]


def make_request(
    data: Sequence[str], output: str | Path, given: Mapping[str, Any], in_memory: Sequence[InputFile] = ()
) -> Request:
    """A request from what `fit` was given, in Python or as a command; `in_memory` are files of rows in memory."""
    _refuse_beside_recipe(data, given)
    files = {file.name: file for file in in_memory}
    options = read_options(given)
    how = {name: options.pop(name) for name in How._fields if name in options}
    names = [name if name in files or _is_recipe(name) else named(name, **how) for name in data]
    request = Request(data=tuple(names), output=Path(output), in_memory=files, **options)
    request = reduce(_with_own_splits, names, request)
    if request.continue_:
        if "base" in given:
            problem = "a fit that continues a model starts from it"
            raise InputError(option("base"), problem, "", f"leave it out, or leave out {option('continue')}")
        request = replace(request, base=(str(request.continue_),))
    return replace(request, budget="") if any(map(_is_recipe, data)) else request


def _with_own_splits(request: Request, name: str) -> Request:
    """Of a folder with judgements, the training rows train, the test rows decide, and the corpus is searched."""
    splits = {} if split_name(name)[1].split else splits_of(name)
    if not splits:
        return request
    corpus = (*request.corpus, named(name, split=CORPUS))
    if not {TRAIN, TEST} <= splits.keys():
        return replace(request, corpus=corpus)
    data = tuple(named(other, split=TRAIN) if other == name else other for other in request.data)
    against = request.against or (f"retrieval:{named(name, split=TEST)}",)
    return replace(request, data=data, against=against, corpus=corpus)


def absolute(name: str) -> str:
    """The absolute path of a folder; a name that is not a folder stays as it is."""
    return str(Path(name).resolve()) if at_its_name(Path(name)).is_dir() else name


def _refuse_beside_recipe(data: Sequence[str], given: Mapping[str, Any]) -> None:
    """A recipe is given alone, and sets some of the options itself."""
    recipes = [name for name in data if _is_recipe(name)]
    if recipes and len(data) > 1:
        fix = "name the data in the recipe, or leave the recipe out"
        raise InputError(recipes[0], "a recipe is given together with other data", "the recipe alone", fix)
    if recipes and (set_by_it := [option(name) for name in given if OPTIONS[name].by_recipe]):
        names, pronoun = " and ".join(set_by_it), "it" if len(set_by_it) == 1 else "them"
        problem = f"{names} cannot be given with a recipe, which sets {pronoun}"
        raise InputError(recipes[0], problem, "", f"leave out {names}, or change the recipe")


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
    _refuse_nothing_to_continue(request)
    _refuse_bad_bases(request)
    _refuse_unknown_models(request)
    _refuse_bad_dimensions(request.dimensions)
    _refuse_unknown_device(request.device)
    _refuse_missing_files(request)
    refuse_no_model(request.output)
    _refuse_foreign_model(request)


def _refuse_bad_bases(request: Request) -> None:
    known = request.base_paths
    if AUTO in known and not request.picks_base:
        problem = f"{AUTO} is given together with {next(name for name in request.base if name != AUTO)}"
        raise InputError(option("base"), problem, f"{AUTO} alone, or names", "leave one of them out")
    if request.picks_base and request.pooling:
        problem = f"{AUTO} chooses among encoders that state their own"
        raise InputError(option("pooling"), problem, "", "leave it out, or name the base")
    if request.max_latency is not None and not request.picks_base:
        problem, expected = "nothing is chosen by latency", option("base", AUTO)
        raise InputError(option("max_latency"), problem, expected, f"give it too, or leave {option('max_latency')} out")
    if twice := [name for name, path in zip(request.base, known, strict=True) if known.count(path) > 1]:
        raise InputError(option("base"), f"{twice[0]} is named twice", "different models", "name each of them once")


def _refuse_nothing_to_continue(request: Request) -> None:
    if request.continue_ and not (request.folder_of(request.continue_) / "report.json").is_file():
        problem = f"there is no {request.folder_of(request.continue_)}, which has the rows that it was fitted to"
        raise InputError(str(request.continue_), problem, "a model that `sentloom fit` wrote", "fit anew to all rows")


def _refuse_unknown_models(request: Request) -> None:
    """Models are loaded late: a name that cannot be found is reported at once."""
    for name in () if request.picks_base else request.base:
        refuse_absent(name)
    at_endpoint = request.endpoint is not None
    writer = None if at_endpoint or request.writer == "none" else request.writer
    others = [request.guide, *request.teacher, request.reranker, writer]
    for name in filter(None, others):
        refuse_absent(name)


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
    for name in request.labels:
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


def _refuse_foreign_model(request: Request) -> None:
    """A model is replaced only if a fit wrote it, and never by one that starts from it."""
    output = request.output.resolve()
    if output.exists() and output in [Path(base).resolve() for base in request.base]:
        problem = "this is the base itself"
    elif output.exists() and not output.with_name(f"{output.name}.fit").is_dir():
        problem = "this model was not written by fit"
    else:
        return
    raise InputError(str(request.output), problem, "a folder that does not exist yet", "choose another folder")
