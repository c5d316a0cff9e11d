"""Write the table of options in docs/fit.md, from where they are declared: src/sentloom/fitting/options.py.

python tools/options.py             # write it
python tools/options.py --check     # exit code 1 if it is not what is declared
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from sentloom.fitting.options import OPTIONS, Option

PAGE = Path(__file__).parents[1] / "docs" / "fit.md"
START, END = "<!-- options: written by tools/options.py -->\n", "<!-- end of options -->\n"
RECIPE = {True: "the recipe sets it", False: "may be given"}


def table() -> Iterator[str]:
    """A row per option."""
    yield "| command | Python | what it is | beside a recipe |"
    yield "|---|---|---|---|"
    for option in OPTIONS.values():
        yield f"| `{typed(option)}` | `{option.name}` | {said(option)} | {RECIPE[option.by_recipe]} |"


def typed(option: Option) -> str:
    """An option as it is typed."""
    flag = option.flag
    if option.is_flag:
        return f"--no-{flag}" if option.default else f"--{flag}"
    return f"--{flag} {option.metavar or '|'.join(option.choices)}".replace("|", "\\|")


def said(option: Option) -> str:
    """Its help, where the command may repeat it and Python takes a list."""
    return f"{option.described}{' Repeatable; a list in Python.' if option.is_list else ''}"


def written(page: str) -> str:
    """The page with today's table."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return before + START + "\n" + "\n".join(table()) + "\n\n" + END + after


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(page != written(page))
    PAGE.write_text(written(page), "utf-8")
