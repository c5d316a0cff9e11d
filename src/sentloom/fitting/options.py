"""The options of `fit`, each declared once, in `Options`: name, type, default, help, and what depends on it.

What follows from this file: the options of the command and their help (`cli.fitting`), the signature of `sentloom.fit`
and the list in its docstring (`api.fitting`), the request, the command that repeats it and what cannot be given beside
a recipe (`request`), and what a plan depends on (`plan`). `python tools/options.py` writes the table in docs/fit.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from sentloom.data.layout import Columns, as_columns
from sentloom.data.shapes import Shape, as_shape
from sentloom.errors import InputError, option

Names = str | Path | Sequence[str | Path]
Bases = Annotated[
    Names,
    "the folder or the name of a model, or a list of these",
    "to start from an Encoder in memory, first save it: encoder.save(folder)",
]
BudgetText = Annotated[str, "a time or a number of steps", "for example 10m, 90s, 1.5h or 400steps"]
Dimensions = Annotated[Sequence[int], "a list of whole numbers", "write [384, 256, 128, 64]"]

DIMENSIONS_FIX = "write them as in 384,256,128,64"


def as_it_is(given: Any) -> Any:
    """What is given has the type of the option."""
    return given


def as_names(given: Names) -> tuple[str, ...]:
    """One name or several."""
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))


def as_models(given: Names) -> tuple[str, ...]:
    """The names of models, of which there must be one."""
    if not (models := as_names(given)):
        raise InputError("base", "the list is empty", "one model or more", "name one, or leave the option out")
    return models


def as_name(given: str | Path) -> str | None:
    """A name; an empty one is none."""
    return str(given) or None


def as_path(given: str | Path) -> Path | None:
    """A path; an empty one is none."""
    return Path(given) if str(given) else None


def as_dimensions(given: str | Sequence[int]) -> tuple[int, ...]:
    """Numbers, or text as in "384,256,128,64"."""
    if not isinstance(given, str):
        return tuple(map(int, given))
    parts = [part.strip() for part in given.split(",")]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        problem = f"cannot parse {wrong[0]!r} in {given!r}"
        raise InputError(option("dimensions"), problem, "whole numbers with commas between them", DIMENSIONS_FIX)
    return tuple(map(int, parts))


@dataclass(frozen=True)
class Option:
    """An option. Name, type and default are those of the field that it describes."""

    help: str  # what it is; what a flag that is on by default does when it is turned off
    metavar: str | None = None  # what a value is called on help pages
    takes: Any = None  # the type in Python, if that is wider; a word for those of TAKEN (`api.fitting`)
    read: Callable[[Any], Any] = as_it_is  # from what is given in Python or in the command
    least: int | None = None  # number
    by_recipe: bool = False  # a recipe sets it, so it cannot be given beside one
    # A plan depends on its value, on what `plan_inputs` finds there (the content of files, say), or not at all; a
    # plan always depends on the rows.
    plan: Literal["value", "content", "no"] = "value"
    name: str = ""
    kind: Any = None
    default: Any = None

    @property
    def flag(self) -> str:
        """Its name in a command; in Python a word of the language has an underscore after it."""
        return self.name.rstrip("_").replace("_", "-")

    @property
    def is_flag(self) -> bool:
        """Whether it is on or off."""
        return self.kind is bool

    @property
    def is_list(self) -> bool:
        """Whether the command takes it several times."""
        return self.kind == tuple[str, ...]

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it can be; none if it is something else."""
        return tuple(word for kind in get_args(self.kind) if get_origin(kind) is Literal for word in get_args(kind))

    @property
    def described(self) -> str:
        """Its help, with its default."""
        shown = ", ".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        return self.help if self.is_flag or shown in (None, "") else f"{self.help} By default {shown}."

    @property
    def in_python(self) -> str:
        """Its help for a caller in Python, where a flag that is on by default is an argument to be False."""
        return f"If False, {self.help[0].lower()}{self.help[1:]}" if self.default is True else self.described


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `fit` can be told besides its data and its output."""

    base: Annotated[
        tuple[str, ...],
        Option(
            "The encoder to start from: a name that `sentloom models` lists, a model folder or a hub name. Several "
            "race, and the winner has to beat the best of them. With auto, all of `sentloom models` that are here are "
            "scored first, and the best is fitted.",
            "MODEL",
            Bases,
            as_models,
            by_recipe=True,
            plan="content",
        ),
    ] = ("embedded",)
    max_latency: Annotated[
        int | None,
        Option("With --base auto: the milliseconds that a query may take here.", "MS", least=1, by_recipe=True),
    ] = None
    pooling: Annotated[
        str | None,
        Option(
            "The pooling of bases that state none: last for models made for writing, which need one; mean, first or "
            "mask for others, which otherwise get what suits the method.",
            "NAME",
            str,
            str,
            by_recipe=True,
        ),
    ] = None
    budget: Annotated[
        str,
        Option(
            "For all routes together: a time (90s, 10m, 1.5h) or a number of steps (400steps).",
            "AMOUNT",
            BudgetText,
            by_recipe=True,
        ),
    ] = "10m"
    continue_: Annotated[
        Path | None,
        Option(
            "A model that `fit` wrote, to learn from more rows of the same kind: its rows train again, its test rows "
            "stay test rows, and the new model has to beat it.",
            "OLD",
            str | Path,
            as_path,
            by_recipe=True,
            plan="no",  # it is the base
        ),
    ] = None
    against: Annotated[
        tuple[str, ...],
        Option("A set or file that decides, instead of held-out rows.", "SET", "rows", as_names, plan="content"),
    ] = ()
    labels: Annotated[
        tuple[str, ...],
        Option(
            "Answers of `sentloom tick` about this fit, which decide where no other labels do. Nothing is trained on "
            "them.",
            "FILE",
            Names,
            as_names,
            plan="no",
        ),
    ] = ()
    general: Annotated[
        Path | None,
        Option(
            "A data folder with sts/STSB.test.tsv, on which to watch general ability.",
            "DIR",
            str | Path,
            as_path,
            plan="content",
        ),
    ] = None
    group: Annotated[
        tuple[str, ...],
        Option(
            "A column whose values connect rows, such as a customer or a thread: rows with the same value are not "
            "divided between training and test, unless that would put more than 5% of the file into one cluster (the "
            "output then says so).",
            "COLUMN",
            str | Sequence[str],
            as_names,
        ),
    ] = ()
    corpus: Annotated[
        tuple[str, ...],
        Option("More texts that held-out queries search among.", "FILE", "rows", as_names, plan="content"),
    ] = ()
    dimensions: Annotated[
        tuple[int, ...],
        Option(
            "Train vectors that can be truncated to their first dimensions: 384,256,128,64 (Matryoshka).",
            "N,N,...",
            Dimensions,
            as_dimensions,
            by_recipe=True,
        ),
    ] = ()
    writer: Annotated[
        str | None,
        Option(
            "What writes queries and sentences to learn from: qwen-1.5b, a folder, a hub name, none, or https://..., "
            "an OpenAI-compatible endpoint, whose key is read from the variable SENTLOOM_WRITER_KEY. By default "
            "qwen-1.5b, if it is on this machine and the budget is 30 minutes or more.",
            "MODEL",
            str | Path,
            as_name,
            by_recipe=True,
        ),
    ] = None
    writer_model: Annotated[str | None, Option("The name of the model at the endpoint.", "NAME", by_recipe=True)] = None
    max_tokens: Annotated[
        int | None,
        Option("Stop before the endpoint has used more tokens than this.", "NUMBER", least=1, by_recipe=True),
    ] = None
    guide: Annotated[
        str | None,
        Option(
            "An encoder that finds false negatives: bge-small, a model folder or a hub name. By default none.",
            "MODEL",
            str | Path,
            as_name,
            by_recipe=True,
        ),
    ] = None
    teacher: Annotated[
        tuple[str, ...],
        Option(
            "What to learn from: an encoder, whose neighbourhoods raw text teaches, or a cross-encoder, if it ranks "
            "the validation rows better than the base: bge-small, reranker, a model folder or a hub name. Several "
            "encoders are joined. By default none.",
            "MODEL",
            Names,
            as_names,
            by_recipe=True,
        ),
    ] = ()
    reranker: Annotated[
        str | None,
        Option(
            "A cross-encoder that reads the first results of a search again, if the whole search is shown to be better "
            "with it: reranker, a model folder or a hub name. By default none.",
            "MODEL",
            str | Path,
            as_name,
            plan="no",
        ),
    ] = None
    force: Annotated[bool, Option("Write the model even if it is not better than its base.", plan="content")] = False
    seed: Annotated[int, Option("The seed of training.", "NUMBER", least=0, by_recipe=True)] = 1
    shape: Annotated[
        Shape | None,
        Option(
            f"What a row is, if the column names do not say it: {', '.join(Shape)}.",
            "SHAPE",
            Shape | str,
            as_shape,
            by_recipe=True,
        ),
    ] = None
    columns: Annotated[
        Mapping[str, str | int] | None,
        Option(
            "Which column is which: 'anchor=title, positive=body', 'text=message, label=intent', or "
            "'label=intent+team' for two label columns. Use column numbers (anchor=1) if there is no header.",
            "ROLE=NAME,...",
            Columns,
            as_columns,
            by_recipe=True,
        ),
    ] = None
    strict: Annotated[
        bool,
        Option("Refuse data with any unusable row. By default up to 5% of them are left out.", plan="no"),
    ] = False
    max_unusable: Annotated[
        str | None,
        Option("The share of unusable rows that may be left out: 0.2 or 20%.", "SHARE", str | float, str),
    ] = None
    sheet: Annotated[
        str | None,
        Option("The sheet of a spreadsheet, by name or number. By default the first that has rows.", "NAME", str, str),
    ] = None
    encoding: Annotated[
        str | None,
        Option("The encoding of text files: windows-1252, shift_jis ... By default it is detected.", "NAME", str, str),
    ] = None
    min_count: Annotated[
        int | None,
        Option("Leave out pairs of a search log that were clicked less often.", "NUMBER", int, int),
    ] = None
    examples: Annotated[
        bool,
        Option("Write report and model card without texts of your rows. By default they show some.", plan="no"),
    ] = True
    device: Annotated[
        str | None,
        Option(
            "Where models run: cpu, cuda, cuda:1 or mps. By default a GPU if there is one, else the CPU.",
            "NAME",
            "device",
            str,
        ),
    ] = None
    precision: Annotated[
        Literal["fp32", "bf16"] | None,
        Option(
            "Use fp32 or bf16, which is less exact, and faster where the hardware computes in it. By default training "
            "uses bf16 on CPUs with instructions for it, and everything else is in fp32."
        ),
    ] = None


def _declared() -> dict[str, Option]:
    hints = get_type_hints(Options, include_extras=True)
    parts = {field.name: (*get_args(hints[field.name]), field.default) for field in fields(Options)}
    return {name: replace(said, name=name, kind=kind, default=default) for name, (kind, said, default) in parts.items()}


OPTIONS = _declared()


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given (None: it was not), as `Options` has them."""
    return {name: OPTIONS[name].read(value) for name, value in given.items()}


def plan_values(options: Options, content: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan depends on, as JSON has it: values of options, and the `content` of what others name."""
    values = {
        option.name: content[option.name] if option.plan == "content" else _plain(getattr(options, option.name))
        for option in OPTIONS.values()
        if option.plan != "no"
    }
    assert content.keys() <= values.keys(), "content of options that are declared to have it"
    return values


def _plain(value: Any) -> Any:
    return [*value] if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
