"""What a fit is asked for, and where it puts what it makes."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.pipeline.runner import refuse_no_model

DEFAULT_BASE = "embedded"
UNITS = {"s": 1, "m": 60, "h": 3600}
BUDGET_FORM = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>s|m|h|steps?)", re.IGNORECASE)

Log = Callable[[str], None]


@dataclass(frozen=True)
class Budget:
    """Seconds in total, or optimizer steps over all runs: one of the two is given."""

    seconds: float | None
    steps: int | None

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """From "10m", "90s", "1.5h" or "400steps"."""
        found = BUDGET_FORM.fullmatch(str(text).strip())
        unit = found["unit"].lower() if found else ""
        number = float(found["number"]) if found else 0.0
        if number == 0 or (unit not in UNITS and not number.is_integer()):
            raise InputError(
                "budget", f"{text!r} is not a budget", "a time or a number of steps", "say 10m, 90s, 1.5h or 400steps"
            )
        return cls(number * UNITS[unit], None) if unit in UNITS else cls(None, int(number))


@dataclass(frozen=True)
class Request:
    """The arguments of `sentloom fit`."""

    data: tuple[str, ...]
    output: Path  # the model
    base: str
    budget: str
    against: tuple[str, ...]  # evaluation sets that decide instead of held-out rows
    general: Path | None  # a data folder with a labelled general set
    force: bool
    synthesizer: str | None
    seed: int
    shape: Shape | None = None  # of every input, if its columns do not say it
    columns: Mapping[str, str | int] | None = None
    strict: bool = False  # refuse data with a single unusable row
    device: str | None = None
    precision: str | None = None

    @property
    def folder(self) -> Path:
        """Where everything but the model goes: beside it."""
        return self.folder_of(self.output)

    @staticmethod
    def folder_of(output: Path) -> Path:
        """The folder beside a model."""
        named = output if output.name else output.resolve()
        return named.with_name(f"{named.name}.fit")

    @property
    def recipe(self) -> Path | None:
        """The recipe, if one is given instead of data."""
        (first, *_) = self.data
        return Path(first) if Path(first).suffix in (".yaml", ".yml") else None

    @property
    def base_path(self) -> str:
        """The base as a recipe in another folder can name it."""
        return _absolute(self.base)

    @property
    def synthesizer_path(self) -> str | None:
        """The synthesizer as a recipe in another folder can name it."""
        return self.synthesizer and _absolute(self.synthesizer)

    @property
    def parsed_budget(self) -> Budget:
        """The budget as a number of seconds or steps."""
        return Budget.parse(self.budget)

    @property
    def command(self) -> str:
        """The command that does the same."""
        parts = ["sentloom", "fit", *self.data, "-o", str(self.output)]
        parts += [] if self.recipe else ["--base", self.base, "--budget", self.budget, "--seed", str(self.seed)]
        parts += [part for one in self.against for part in ("--against", one)]
        parts += ["--general", str(self.general)] if self.general else []
        parts += ["--synthesizer", self.synthesizer] if self.synthesizer else []
        parts += ["--shape", str(self.shape)] if self.shape else []
        columns = ",".join(f"{role}={name}" for role, name in (self.columns or {}).items())
        parts += ["--columns", columns] if columns else []
        parts += ["--force"] if self.force else []
        parts += ["--strict"] if self.strict else []
        parts += ["--device", self.device] if self.device else []
        parts += ["--precision", self.precision] if self.precision else []
        return shlex.join(parts)


def _absolute(name: str) -> str:
    """The absolute path of a folder; a name that is not a folder stays as it is."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def refuse_bad_request(request: Request) -> None:
    """Report at once what would otherwise fail at the end."""
    if not request.data or not all(request.data):
        raise InputError("data", "nothing is given", "one file or more", "name the files to learn from")
    if not all(request.against):
        raise InputError("--against", "the name is empty", "a set or a file", "name one, or leave the option out")
    assert request.parsed_budget, "a budget that can be parsed"
    if not isinstance(request.seed, int) or request.seed < 0:
        raise InputError("seed", f"{request.seed!r} is not a seed", "an integer of 0 or more", "choose another seed")
    _refuse_beside_recipe(request)
    refuse_no_model(request.output)
    _refuse_foreign_model(request)


def _refuse_beside_recipe(request: Request) -> None:
    """A recipe says itself what its base, its data and its columns are."""
    recipes = [name for name in request.data if Path(name).suffix in (".yaml", ".yml")]
    if recipes and len(request.data) > 1:
        fix = "name the data in the recipe, or leave the recipe out"
        raise InputError(recipes[0], "a recipe is given together with other data", "the recipe alone", fix)
    options = {
        "--base": request.base != DEFAULT_BASE,
        "--synthesizer": request.synthesizer,
        "--shape": request.shape,
        "--columns": request.columns,
    }
    if recipes and (given := [name for name, value in options.items() if value]):
        fix = f"leave out {' and '.join(given)}, or change the recipe"
        raise InputError(recipes[0], f"{', '.join(given)} is given beside a recipe, which says that itself", "", fix)


def _refuse_foreign_model(request: Request) -> None:
    """A model is replaced only if a fit wrote it, and never by one that starts from it."""
    output = request.output.resolve()
    if output.exists() and Path(request.base).resolve() == output:
        problem = "this is the base itself"
    elif output.exists() and not output.with_name(f"{output.name}.fit").is_dir():
        problem = "this model was not written by fit"
    else:
        return
    raise InputError(str(request.output), problem, "a folder that does not exist yet", "choose another folder")
