"""Help pages say what a value is (NUMBER, MODEL), not its Python type; a refused value is explained in a sentence."""

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sentloom.errors import InputError, in_command, plain_words

if TYPE_CHECKING:
    from pydantic import ValidationError

WORDS = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "Path": "PATH"}
VALUES = {  # what a text is, by the name of the option
    **dict.fromkeys(("model", "guide", "teacher"), "MODEL"),
    **dict.fromkeys(("against", "corpus", "file", "pairs"), "DATA"),
    **dict.fromkeys(("column", "distinct"), "COLUMN"),
    "suite": "SET",
    "mteb": "TASK",
    "variant": "VARIANT",
    "row": "ROW",
    "scale": "paper|tiny",
    "kind": "KIND",
    "budget": "AMOUNT",
    "scripts": "SCRIPT,...",
    "pivot": "MODEL,MODEL",
    "family": "bert|t5|mt5",
    "into": "pt|en",
    "aggregation": "all|mean|wmean",
    "decoding": "beam|sampling",
    "missing": "refuse|skip",
    "vectors": "FILE",
}
SINGLE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")
REQUIRED = re.compile(r"\{(.*)\}(\.\.\.)?")  # an argument in typer's usage line


class _PlainValues:
    """Names the values of all options that have no name of their own; paragraphs have no line breaks of the source."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002 - typer's name
        super().__init__(*args, help=help and SINGLE_BREAK.sub(" ", help), **options)  # type: ignore[call-arg]

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None  # its name says what it is
            elif parameter.is_flag:
                parameter.metavar = ""
            elif parameter.metavar is None:
                kind = parameter.display_type(ctx).strip("<>").removeprefix("list[").partition(" ")[0].rstrip("]")
                word = WORDS.get(kind, kind)
                parameter.metavar = VALUES.get(parameter.name, word) if word == "TEXT" else word
        return parameters

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [REQUIRED.sub(r"\1\2", piece) for piece in pieces]


class Command(_PlainValues, TyperCommand):
    """A command of sentloom."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a value as our functions do, without pydantic's words."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from pydantic import ValidationError  # here, since it takes a while to import

            if not (error.param and isinstance(error.__cause__, ValidationError)):
                raise
            refused = _refused(error.param.opts[0], error.__cause__)
        raise refused

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors name its options as they are typed."""
        with in_command():
            return super().invoke(ctx)


class Group(_PlainValues, TyperGroup):
    """All commands of sentloom."""


def _refused(name: str, error: "ValidationError") -> InputError:
    """What pydantic says about the value of an option, as our errors say it."""
    first = error.errors()[0]
    value, expected = first["input"], plain_words(first["msg"])
    choices = re.findall(r"'([^']*)'", expected.partition(" is not one of ")[2])
    near = get_close_matches(str(value), choices, n=1)
    fix = f"did you mean {near[0]}?" if near else "correct the value, or leave the option out"
    return InputError(name, f"{value} cannot be used", f"one of {', '.join(choices)}" if choices else expected, fix)
