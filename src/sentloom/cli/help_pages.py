"""Help pages that say what a value is (NUMBER, PATH), not its Python type, and nothing beside a flag."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

WORDS = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "Path": "PATH"}


class _PlainValues:
    """Names the values of all options that have no name of their own."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if one.param_type_name == "argument":
                one.display_type_rich = lambda ctx: None  # its name says what it is
            elif one.is_flag:
                one.metavar = ""
            elif one.metavar is None:
                kind = one.display_type(ctx).strip("<>").removeprefix("list[").partition(" ")[0].rstrip("]")
                one.metavar = WORDS.get(kind, kind)
        return found


class Command(_PlainValues, TyperCommand):
    """A command of sentloom."""


class Group(_PlainValues, TyperGroup):
    """All commands of sentloom."""
